#include "replay/trace_file.hpp"

#include "files/whole_file.hpp"

#include "swaplab/sim/digest.hpp"
#include "swaplab/sim/error.hpp"
#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <unistd.h>

namespace swaplab::harness {
namespace {

constexpr std::uint64_t trace_bytes_max = std::uint64_t{1} << 30U;
constexpr std::size_t stem_letters_max = 120;

std::uint64_t machine_bytes() {
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    const long page_bytes = ::sysconf(_SC_PAGESIZE);
    return pages > 0 && page_bytes > 0
               ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes)
               : 0;
}

bool is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.';
}

}  // namespace

sim::DeviceTrace read_trace(Storage& storage, const std::string& path) {
    const auto bytes = read_whole(storage, path, trace_bytes_max);
    try {
        return sim::decode_trace(bytes);
    } catch (const sim::ArgumentError& error) {
        sim::ErrorFields fields = error.fields();
        fields.insert(fields.begin(), {"file", path});
        throw sim::ArgumentError(
            fmt::format("{}: {} (swaplab run PATH --trace DIR)", path, error.what()),
            std::move(fields));
    }
}

void require_memory(const sim::DeviceTrace& trace) {
    const std::uint64_t held = sim::most_bytes_held(trace.program);
    const std::uint64_t here = machine_bytes();
    if (held > here && !SWAPLAB_MUTANT("replay.any_size")) {
        throw sim::DeviceError(
            fmt::format("cannot replay: the trace holds {} at once, this machine has {}; replay it "
                        "on a larger one",
                        sim::format_bytes(held), sim::format_bytes(here)),
            {{"operation", "replay"},
             {"expected", std::to_string(here)},
             {"found", std::to_string(held)}});
    }
}

std::string file_stem(const std::string& run_name) {
    std::string stem;
    for (const char c : run_name) {
        const bool joins = !is_plain(c) && (stem.empty() || stem.back() == '_');
        if (!joins && stem.size() < stem_letters_max) {
            stem += is_plain(c) ? c : '_';
        }
    }
    while (!stem.empty() && stem.back() == '_') {
        stem.pop_back();
    }
    sim::RollingDigest digest;
    digest.add(run_name);
    return fmt::format("{}.{:012x}", stem, digest.value() >> 16U);
}

}  // namespace swaplab::harness
