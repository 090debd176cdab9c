#include "scenario/play/faults.hpp"

#include "scenario/language/patch.hpp"

#include "swaplab/sim/error.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace swaplab::harness::scenario {
namespace {

std::string rank_text(int rank) {
    return fmt::format("rank {}", rank);
}

struct Place {
    std::string_view at;
    std::string_view seam;
    std::string_view operation;
};

constexpr Place places[] = {
    {"device_alloc", "device", "allocate"},
    {"pinned_alloc", "device", "allocate_pinned"},
    {"copy", "device", "copy"},
    {"launch", "device", "launch"},
    {"open", "storage", "open"},
    {"read", "storage", "read"},
    {"write", "storage", "write"},
    {"fsync", "storage", "fsync"},
    {"rename", "storage", "rename"},
    {"mkdir", "storage", "mkdir"},
    {"remove", "storage", "remove"},
    {"collective", collective_seam, "collective"},
};

/// The highest bit of the exponent of a first fp32: no rounding hides that.
constexpr std::uint64_t flipped_bit = 30;

class RankReadableFile : public ReadableFile {
  public:
    RankReadableFile(std::unique_ptr<ReadableFile> inner, RankStorage& storage, std::string path)
        : inner_(std::move(inner)), storage_(storage), path_(std::move(path)) {}

    std::uint64_t size() const override { return inner_->size(); }
    void read(std::uint64_t offset_bytes, std::span<std::byte> out) override {
        StorageOperation read{"read", path_, "", offset_bytes, out.size()};
        if (storage_.strikes("read", read)) {
            inner_->read(offset_bytes, out.first(storage_.bytes_before_failure(read)));
            storage_.fail("read", read);
        }
        storage_.succeed(std::move(read));
        inner_->read(offset_bytes, out);
    }

  private:
    std::unique_ptr<ReadableFile> inner_;
    RankStorage& storage_;
    std::string path_;
};

class RankWritableFile : public WritableFile {
  public:
    RankWritableFile(std::unique_ptr<WritableFile> inner, RankStorage& storage, std::string path)
        : inner_(std::move(inner)), storage_(storage), path_(std::move(path)) {}

    void append(std::span<const std::byte> bytes) override {
        StorageOperation write{"write", path_, "", offset_bytes_, bytes.size()};
        if (storage_.strikes("write", write)) {
            inner_->append(bytes.first(storage_.bytes_before_failure(write)));
            storage_.fail("write", write);
        }
        storage_.succeed(std::move(write));
        inner_->append(bytes);
        offset_bytes_ += bytes.size();
    }
    void sync() override {
        if (storage_.syncs({"fsync", path_, "", 0, 0})) {
            inner_->sync();
        }
    }
    void close() override { inner_->close(); }

  private:
    std::unique_ptr<WritableFile> inner_;
    RankStorage& storage_;
    std::string path_;
    std::uint64_t offset_bytes_ = 0;
};

}  // namespace

sim::Fault fault_of(const FaultSpec& spec) {
    sim::Fault fault;
    const auto* place = std::find_if(std::begin(places), std::end(places),
                                     [&](const Place& each) { return each.at == spec.at; });
    const bool phase = place == std::end(places);
    fault.seam = phase ? phase_seam : place->seam;
    fault.operation = phase ? std::string_view(spec.at) : place->operation;
    fault.ordinal = static_cast<std::uint64_t>(spec.nth);
    fault.rank = spec.rank;
    fault.bytes_min = spec.over_bytes ? *spec.over_bytes + 1 : 0;
    fault.action = spec.then;
    fault.for_good = !spec.once;
    fault.bit = flipped_bit;
    fault.delay = std::chrono::milliseconds(spec.by_ms);
    return fault;
}

RankStorage::RankStorage(Storage& inner, sim::FaultInjector& faults, int rank)
    : inner_(inner), faults_(faults), rank_(rank) {}

void RankStorage::expect_fault(std::string file, std::string disk_error) {
    file_ = std::move(file);
    disk_error_ = std::move(disk_error);
}

bool RankStorage::strikes(std::string_view point, const StorageOperation& operation) {
    const std::string name = operation.path.substr(operation.path.rfind('/') + 1);
    const bool meant = file_.empty() || SWAPLAB_MUTANT("faults.file_ignored") ||
                       glob_matches(file_, name) || glob_matches(file_, operation.path);
    return meant && faults_.pass({"storage", point, operation.path, operation.bytes}) != nullptr;
}

std::size_t RankStorage::bytes_before_failure(const StorageOperation& operation) const {
    return disk_error_ == "short" ? operation.bytes / 2 : 0;
}

void RankStorage::fail(std::string_view point, const StorageOperation& operation) const {
    const std::string says =
        disk_error_ == "eio"      ? "the disk failed"
        : disk_error_ == "enospc" ? "no space left"
        : disk_error_ == "short"
            ? fmt::format("{} of {} B", bytes_before_failure(operation), operation.bytes)
            : "failed";
    throw StorageError(fmt::format("{}: {} of {}: {}: the scenario breaks it", rank_text(rank_),
                                   point, operation.path, says),
                       {{"operation", std::string(point)},
                        {"rank", rank_text(rank_)},
                        {"file", operation.path},
                        {"found", says},
                        {"reason", "injected"}});
}

void RankStorage::pass(std::string_view point, StorageOperation operation) {
    if (strikes(point, operation)) {
        fail(point, operation);
    }
    succeed(std::move(operation));
}

bool RankStorage::syncs(StorageOperation operation) {
    const bool struck = strikes("fsync", operation);
    if (struck && disk_error_ != "lost") {
        fail("fsync", operation);
    }
    succeed(std::move(operation));
    return !struck;
}

std::unique_ptr<ReadableFile> RankStorage::open(const std::string& path) {
    pass("open", {"open", path, "", 0, 0});
    return std::make_unique<RankReadableFile>(inner_.open(path), *this, path);
}

std::unique_ptr<WritableFile> RankStorage::create(const std::string& path) {
    pass("open", {"create", path, "", 0, 0});
    return std::make_unique<RankWritableFile>(inner_.create(path), *this, path);
}

bool RankStorage::exists(const std::string& path) {
    log_.push_back({"exists", path, "", 0, 0});
    return inner_.exists(path);
}

std::vector<DirectoryEntry> RankStorage::list(const std::string& path) {
    log_.push_back({"list", path, "", 0, 0});
    return inner_.list(path);
}

void RankStorage::make_directory(const std::string& path) {
    pass("mkdir", {"mkdir", path, "", 0, 0});
    inner_.make_directory(path);
}

void RankStorage::remove(const std::string& path) {
    pass("remove", {"remove", path, "", 0, 0});
    inner_.remove(path);
}

void RankStorage::rename(const std::string& from, const std::string& to) {
    pass("rename", {"rename", from, to, 0, 0});
    inner_.rename(from, to);
}

void RankStorage::exchange(const std::string& a, const std::string& b) {
    pass("rename", {"exchange", a, b, 0, 0});
    inner_.exchange(a, b);
}

void RankStorage::sync_directory(const std::string& path) {
    if (syncs({"fsync_directory", path, "", 0, 0})) {
        inner_.sync_directory(path);
    }
}

}  // namespace swaplab::harness::scenario
