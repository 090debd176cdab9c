/// gpu_nightly available       exit code 77, with the reason, where CUDA cannot be used
/// gpu_nightly rank N          trains rank N's model on the GPU, prints its digest
/// gpu_nightly expected N      the same on the simulated device
/// gpu_nightly measure OUT PARTS full|little
///                             measures, and writes nightly.{json,xml,html} and profile.json to
///                             OUT; PARTS: lines "exit-code seconds name" of what ran before

#include "nightly/report.hpp"

#include "swaplab/optim/cuda_kernels.hpp"
#include "swaplab/sim/cuda/standin.hpp"
#include "swaplab/sim/simulated_device.hpp"
#include "swaplab/sim/world.hpp"

#include <fmt/format.h>

#include <fstream>
#include <functional>
#include <iostream>
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

std::string digest_of(int rank, bool on_gpu) {
    std::string digest;
    alone([&](sim::Communicator& communicator) {
        const auto device = on_gpu ? std::unique_ptr<sim::Device>(sim::make_cuda_device({}))
                                   : sim::make_simulated_device({});
        digest = trained_digest(*device, communicator, rank);
    });
    return digest;
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
    const bool is_rank = command == "rank" || command == "expected";
    if (command == "available") {
        const sim::CudaAvailability found = sim::cuda_available();
        std::cout << found.text << "\n";
        return found.usable ? 0 : 77;
    }
    if (!(is_rank && words.size() == 2) && !(command == "measure" && words.size() == 4)) {
        std::cerr << "usage: gpu_nightly available | rank N | expected N | "
                     "measure OUT PARTS full|little\n";
        return 2;
    }
    if (command == "expected") {
        std::cout << digest_of(std::stoi(words[1]), false) << "\n";
        return 0;
    }
    const sim::CudaAvailability found = sim::cuda_available();
    if (!found.usable) {
        std::cerr << "error: CUDA cannot be used: " << found.text << "\n";
        return 4;
    }
    optim::register_cuda_kernels();
    if (command == "rank") {
        std::cout << digest_of(std::stoi(words[1]), true) << "\n";
        return 0;
    }
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
