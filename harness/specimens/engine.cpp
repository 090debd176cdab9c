// What breaks saves and loads, whatever the optimizer.

#include "checkpoint/publisher.hpp"
#include "checkpoint/storage_error.hpp"
#include "specimens/defects.hpp"

#include <fmt/format.h>

#include <utility>

namespace swaplab::harness {
namespace {

/// Writes into the directory itself. Rank 0 refuses one that exists and tells nobody.
class ChecksOnRankZero final : public Publisher {
  public:
    ChecksOnRankZero(Storage& given, const std::string& name) : Publisher(given, name) {
        incomplete_ = directory();
    }
    [[nodiscard]] bool prepares_alone() const noexcept override { return true; }
    void prepare(int rank) override {
        if (rank != 0) {
            return;  // and waits for rank 0
        }
        if (storage().exists(directory())) {
            throw storage_error("save", directory(), "already exists",
                                fmt::format("checkpoint directory {} already exists", directory()));
        }
        storage().make_directory(directory());
    }
    void publish(std::string_view metadata) override { write_metadata(metadata); }
};

/// Gives names to files whose bytes no disk need hold.
class SkipsSync final : public Publisher {
  public:
    using Publisher::Publisher;
    void finish(WritableFile& file) override { file.close(); }
};

template <class Faulty>
std::unique_ptr<Publisher> make_faulty(Storage& storage, const std::string& directory) {
    return std::make_unique<Faulty>(storage, directory);
}

}  // namespace

EngineOptions specimen_engine(EngineOptions sound, const std::vector<std::string>& names) {
    const DefectSet defects(names);
    if (defects.has(Defect::unchecked_read)) {
        sound.checksums = Checksums::ignored;
    }
    if (defects.has(Defect::exists_check_on_rank_0)) {
        sound.make_publisher = make_faulty<ChecksOnRankZero>;
    } else if (defects.has(Defect::sync_skipped)) {
        sound.make_publisher = make_faulty<SkipsSync>;
    }
    return sound;
}

}  // namespace swaplab::harness
