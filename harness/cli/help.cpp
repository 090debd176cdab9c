#include "cli/commands.hpp"

#include <fmt/format.h>

namespace swaplab::harness::cli {
namespace {

constexpr const char* instruction_set() {
#if defined(__AVX512F__)
    return "x86-64 with AVX-512";
#elif defined(__AVX2__)
    return "x86-64 with AVX2";
#elif defined(__x86_64__)
    return "x86-64 baseline";
#elif defined(__aarch64__)
    return "AArch64";
#else
    return "unknown";
#endif
}

constexpr const char* compiler() {
#if defined(__clang__)
    return "clang " __clang_version__;
#else
    return "g++ " __VERSION__;
#endif
}

}  // namespace

std::string help_text() {
    return "swaplab: does an offload optimizer resume, fit and keep its shards?\n"
           "Scenarios     run PATH...                    run scenario files, or every *.toml under "
           "a directory\n"
           "              list, lint, explain PATH...    what is there; is it well formed; what it "
           "would do, in words\n"
           "              list --words, list --defects   the language; the faults that specimens "
           "have\n"
           "              run PATH... --trace DIR        the same, and traces of its devices\n"
           "Traces        replay TRACE...                a recorded run again: findings, peaks, "
           "virtual time, chart; --shrink\n"
           "Checkpoints   inspect DIR                    is anything lost or broken?   (exit 0 "
           "nothing found, 1 finding, 3 cannot tell)\n"
           "              diff A B                       first differing element of every tensor\n"
           "              shard                          who holds which part of a tensor\n"
           "Examples      swaplab run scenarios/ --junit report.xml\n"
           "              swaplab run 'references/stale_groups[swap_adamw]' -v\n"
           "              swaplab lint mine/resume.toml\n"
           "              swaplab inspect runs/step-300 --against runs/model\n"
           "              swaplab run 'references/stale_groups[swap_adamw]' --trace traces\n"
           "              swaplab replay traces/*.trace --profile h200_pcie5 --chart chart.json\n"
           "Everywhere    --json  --color auto|always|never  -q  -v  --version  --help          "
           "Exit codes: swaplab help exit-codes\n";
}

std::string version_number() {
    return SWAPLAB_VERSION;
}

std::string version_text() {
    return fmt::format(
        "swaplab {}\ncommit           {}\ncompiler         {}\n"
        "CUDA             {}\ninstruction set  {}\n",
        version_number(), SWAPLAB_COMMIT, compiler(), SWAPLAB_CUDA_BUILT, instruction_set());
}

}  // namespace swaplab::harness::cli
