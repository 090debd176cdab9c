/// Worlds that cannot be: refused before a rank begins, with what would be right.

#include "world_kinds.hpp"

#include "swaplab/sim/error.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sys/resource.h>
#include <unistd.h>

namespace swaplab::sim {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class Options : public ::testing::TestWithParam<WorldKind> {
  protected:
    static WorldOptions options(int ranks) { return {.world = GetParam(), .size = ranks}; }
};
INSTANTIATE_TEST_SUITE_P(Worlds, Options, ::testing::ValuesIn(kinds),
                         [](const auto& one) { return std::string(name_of(one.param)); });

/// The error of a world that begins no rank.
template <class Exception>
ErrorFields refusal_of(const WorldOptions& options, const std::string& says) {
    bool began = false;
    try {
        static_cast<void>(run_ranks(options, [&](Communicator&) { began = true; }));
    } catch (const Exception& error) {
        EXPECT_FALSE(began);
        EXPECT_THAT(error.what(), HasSubstr(says));
        return error.fields();
    }
    ADD_FAILURE() << "no error";
    return {};
}

TEST_P(Options, WorldsOfImpossibleSizesAreRefusedWithTheLimits) {
    for (const int size : {0, -1, 65, 1'000'000'000, std::numeric_limits<int>::min(),
                           std::numeric_limits<int>::max()}) {
        const auto fields = refusal_of<ArgumentError>(
            options(size), "a world of " + std::to_string(size) + " ranks; it can have 1 to 64");
        EXPECT_THAT(fields, Contains(ErrorField{"parameter", "size"}));
        EXPECT_THAT(fields, Contains(ErrorField{"expected", "1 to 64"}));
        EXPECT_THAT(fields, Contains(ErrorField{"found", std::to_string(size)}));
    }
}

TEST_P(Options, OptionsOutOfRangeAreRefusedWithTheirNames) {
    WorldOptions staging = options(2);
    staging.staging_bytes = std::numeric_limits<std::uint64_t>::max();
    EXPECT_THAT(refusal_of<ArgumentError>(staging, "staging_bytes"),
                Contains(ErrorField{"parameter", "staging_bytes"}));
    WorldOptions value = options(2);
    value.value_bytes = 0;
    EXPECT_THAT(refusal_of<ArgumentError>(value, "value_bytes"),
                Contains(ErrorField{"parameter", "value_bytes"}));
    WorldOptions without_time = options(2);
    without_time.deadline = {};
    EXPECT_THAT(refusal_of<ArgumentError>(without_time, "deadline"),
                Contains(ErrorField{"parameter", "deadline"}));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// No more address space than this process has now and 256 MiB.
class LittleMemory {
  public:
    LittleMemory() {
        ::getrlimit(RLIMIT_AS, &before_);
        ::rlimit little = before_;
        little.rlim_cur = std::min<rlim_t>(before_.rlim_max, used_bytes() + (rlim_t{256} << 20U));
        ::setrlimit(RLIMIT_AS, &little);
    }
    ~LittleMemory() { ::setrlimit(RLIMIT_AS, &before_); }
    LittleMemory(const LittleMemory&) = delete;
    LittleMemory& operator=(const LittleMemory&) = delete;

  private:
    static rlim_t used_bytes() {
        rlim_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
    }

    ::rlimit before_{};
};

TEST_P(Options, AWorldThatDoesNotFitIntoMemoryNamesTheOptionsThatMakeItSmaller) {
    const LittleMemory little;
    WorldOptions large = options(4);
    large.staging_bytes = std::uint64_t{1} << 30U;
    const auto fields = refusal_of<StorageError>(large, "for a world of 4 ranks: ");
    EXPECT_THAT(fields, Contains(ErrorField{"operation", "map world"}));
    EXPECT_THAT(fields, Contains(::testing::Field(&ErrorField::name, "bytes")));
    static_cast<void>(
        refusal_of<StorageError>(large, "smaller staging_bytes (1073741824) or value_bytes"));
    large.staging_bytes = 0;
    EXPECT_NO_THROW(rethrow_first(run_ranks(large, [](Communicator& world) { world.barrier(); })));
}
#endif

}  // namespace
}  // namespace swaplab::sim
