/// gpu_nightly available       exit code 77, with the reason, where CUDA cannot be used
/// gpu_nightly ranks DIR       two processes, begun by exec, train on one GPU, save to DIR, resume;
///                             exit code 1 where they differ from simulated ranks
/// gpu_nightly measure OUT PARTS full|little
///                             measures, and writes nightly.{json,xml,html} and profile.json to
///                             OUT; PARTS: lines "exit-code seconds name" of what ran before

#include "nightly/report.hpp"
#include "nightly/resumed.hpp"

#include "swaplab/optim/cuda_kernels.hpp"
#include "swaplab/sim/cuda/standin.hpp"
#include "swaplab/sim/simulated_device.hpp"
#include "swaplab/sim/world.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace swaplab::harness::nightly {
namespace {

/// A thread: drivers expect a stack of their usual size.
void alone(const sim::RankProgram& program) {
    sim::WorldOptions world;
    world.world = sim::WorldKind::thread;
    sim::rethrow_first(sim::run_ranks(world, program));
}

void require_cuda() {
    const sim::CudaAvailability found = sim::cuda_available();
    if (!found.usable) {
        throw std::runtime_error("CUDA cannot be used: " + found.text);
    }
    optim::register_cuda_kernels();
}

/// In each of the two processes of two_ranks().
[[noreturn]] void be_rank(const std::string& directory) {
    sim::join_world([&](sim::Communicator& communicator) {
        require_cuda();
        const auto device = sim::make_cuda_device({});
        return resumed_digest(*device, communicator, directory);
    });
}

/// Calls nothing of CUDA itself: what it calls would not survive the fork.
int two_ranks(const std::string& directory) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe");
    sim::WorldOptions world;
    world.size = 2;
    const auto found = sim::run_executed_ranks(world, {self, "rank", directory + "/cuda"});
    sim::rethrow_first(found);
    const auto expected = sim::run_rank_functions(world, [&](sim::Communicator& communicator) {
        const auto device = sim::make_simulated_device({});
        return resumed_digest(*device, communicator, directory + "/simulated");
    });
    sim::rethrow_first(expected);
    bool same = true;
    for (std::size_t rank = 0; rank < found.size(); ++rank) {
        same = same && found[rank].value == expected[rank].value;
        std::cout << fmt::format("rank {}: digest {}, simulated {}\n", rank, found[rank].value,
                                 expected[rank].value);
    }
    return same ? 0 : 1;
}

std::vector<Part> read_parts(const std::string& path) {
    std::ifstream in(path);
    std::vector<Part> parts;
    Part part;
    while (in >> part.exit_code >> part.seconds && std::getline(in >> std::ws, part.name)) {
        parts.push_back(part);
    }
    return parts;
}

bool write_file(const std::string& path, const std::string& text) {
    std::ofstream out(path, std::ios::binary);
    out << text;
    out.close();
    if (!out) {
        std::cerr << "error: cannot write " << path << "\n";
    }
    return static_cast<bool>(out);
}

int measure_and_report(const std::string& out, const std::string& parts, bool full) {
    Nightly nightly;
    nightly.gpu = sim::cuda_available().text;
    nightly.judges_timing = full && sim::standin() == nullptr;
    nightly.parts = read_parts(parts);
    alone([&](sim::Communicator& communicator) {
        const auto device = sim::make_cuda_device({});
        nightly.measurements = measure(*device, communicator, full ? full_sizes() : little_sizes());
    });
    const bool written = write_file(out + "/nightly.json", to_json(nightly)) &&
                         write_file(out + "/nightly.xml", to_junit(nightly)) &&
                         write_file(out + "/nightly.html", to_html(nightly)) &&
                         write_file(out + "/profile.json", profile_json(nightly));
    std::cout << to_text(nightly);
    return !written ? 4 : passed(nightly) ? 0 : 1;
}

int run(const std::vector<std::string>& words) {
    const std::string command = words.empty() ? "" : words[0];
    if (command == "available" && words.size() == 1) {
        const sim::CudaAvailability found = sim::cuda_available();
        std::cout << found.text << "\n";
        return found.usable ? 0 : 77;
    }
    if (command == "ranks" && words.size() == 2) {
        return two_ranks(words[1]);
    }
    if (command == "rank" && words.size() == 2) {
        be_rank(words[1]);
    }
    if (command != "measure" || words.size() != 4) {
        std::cerr << "usage: gpu_nightly available | ranks DIR | measure OUT PARTS full|little\n";
        return 2;
    }
    require_cuda();
    return measure_and_report(words[1], words[2], words[3] == "full");
}

}  // namespace
}  // namespace swaplab::harness::nightly

int main(int argc, char** argv) {
    try {
        return swaplab::harness::nightly::run({argv + 1, argv + argc});
    } catch (const std::exception& error) {
        std::cerr << "error: " << error.what() << "\n";
        return 1;
    }
}
