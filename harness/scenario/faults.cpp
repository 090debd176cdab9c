#include "scenario/faults.hpp"

#include "swaplab/sim/error.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <utility>

namespace swaplab::harness::scenario {
namespace {

std::string rank_text(int rank) {
    return fmt::format("rank {}", rank);
}

class FaultyDevice : public sim::Device {
  public:
    FaultyDevice(sim::Device& inner, FaultPlan& plan)
        : Device(inner.rank(), inner.ledger()), inner_(inner), plan_(plan) {}

    void* allocate(std::uint64_t bytes, sim::StreamRef stream, std::string_view tag,
                   sim::CallSite site) override {
        plan_.pass("device_alloc", [&] { run_out(sim::MemoryKind::device, bytes, tag, site); });
        return inner_.allocate(bytes, stream, tag, site);
    }
    void deallocate(void* pointer, sim::StreamRef stream, sim::CallSite site) noexcept override {
        inner_.deallocate(pointer, stream, site);
    }
    void* allocate_pinned(std::uint64_t bytes, std::string_view tag, sim::CallSite site) override {
        plan_.pass("pinned_alloc", [&] { run_out(sim::MemoryKind::pinned, bytes, tag, site); });
        return inner_.allocate_pinned(bytes, tag, site);
    }
    void deallocate_pinned(void* pointer, sim::CallSite site) noexcept override {
        inner_.deallocate_pinned(pointer, site);
    }
    sim::StreamRef create_stream(std::string_view name) override {
        return inner_.create_stream(name);
    }
    void destroy_stream(sim::StreamRef stream) noexcept override { inner_.destroy_stream(stream); }
    sim::EventRef create_event() override { return inner_.create_event(); }
    void destroy_event(sim::EventRef event) noexcept override { inner_.destroy_event(event); }
    void copy_async(void* destination, const void* source, std::uint64_t bytes,
                    sim::CopyDirection direction, sim::StreamRef stream,
                    sim::CallSite site) override {
        plan_.pass("copy", [&] { break_down("copy"); });
        inner_.copy_async(destination, source, bytes, direction, stream, site);
    }
    void fill_async(void* destination, std::byte value, std::uint64_t bytes, sim::StreamRef stream,
                    sim::CallSite site) override {
        inner_.fill_async(destination, value, bytes, stream, site);
    }
    void launch(sim::Kernel kernel, sim::StreamRef stream, sim::CallSite site) override {
        plan_.pass("launch", [&] { break_down("launch " + kernel.name); });
        inner_.launch(std::move(kernel), stream, site);
    }
    void record(sim::EventRef event, sim::StreamRef stream, sim::CallSite site) override {
        inner_.record(event, stream, site);
    }
    void wait(sim::StreamRef stream, sim::EventRef event, sim::CallSite site) override {
        inner_.wait(stream, event, site);
    }
    void synchronize(sim::EventRef event, sim::CallSite site) override {
        inner_.synchronize(event, site);
    }
    bool query(sim::EventRef event, sim::CallSite site) override {
        return inner_.query(event, site);
    }
    void host_access(const void* pointer, std::uint64_t bytes, sim::Access access,
                     sim::CallSite site) override {
        inner_.host_access(pointer, bytes, access, site);
    }
    sim::MemoryInfo memory_info() const override { return inner_.memory_info(); }

  private:
    [[noreturn]] void run_out(sim::MemoryKind kind, std::uint64_t bytes, std::string_view tag,
                              sim::CallSite site) const {
        constexpr std::size_t holders = 10;
        sim::OutOfDeviceMemory::Report report;
        report.rank = rank();
        report.tag = std::string(tag);
        report.requested_bytes = bytes;
        report.rounded_bytes = bytes;
        report.charged_bytes = ledger().now(kind, sim::Size::rounded);
        report.capacity_bytes = report.charged_bytes;
        report.holders = ledger().holders(kind, holders);
        report.by_tag = ledger().by_tag(kind);
        report.site = site;
        throw sim::OutOfDeviceMemory(std::move(report));
    }

    [[noreturn]] void break_down(const std::string& operation) const {
        throw sim::DeviceError(
            fmt::format("{}: {} failed: the scenario breaks it", rank_text(rank()), operation),
            {{"operation", operation}, {"rank", rank_text(rank())}});
    }

    sim::Device& inner_;
    FaultPlan& plan_;
};

class RankReadableFile : public ReadableFile {
  public:
    RankReadableFile(std::unique_ptr<ReadableFile> inner, RankStorage& storage, std::string path)
        : inner_(std::move(inner)), storage_(storage), path_(std::move(path)) {}

    std::uint64_t size() const override { return inner_->size(); }
    void read(std::uint64_t offset_bytes, std::span<std::byte> out) override {
        storage_.pass("read", {"read", path_, "", offset_bytes, out.size()});
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
        storage_.pass("write", {"write", path_, "", offset_bytes_, bytes.size()});
        inner_->append(bytes);
        offset_bytes_ += bytes.size();
    }
    void sync() override {
        storage_.pass("fsync", {"fsync", path_, "", 0, 0});
        inner_->sync();
    }
    void close() override { inner_->close(); }

  private:
    std::unique_ptr<WritableFile> inner_;
    RankStorage& storage_;
    std::string path_;
    std::uint64_t offset_bytes_ = 0;
};

}  // namespace

void FaultPlan::arm(const FaultSpec& fault) {
    armed_ = fault;
    passes_ = 0;
    happened_ = false;
}

bool FaultPlan::disarm() noexcept {
    armed_.reset();
    return happened_;
}

void FaultPlan::pass(std::string_view point, const std::function<void()>& fail) {
    if (!armed_ || armed_->at != point || ++passes_ != armed_->nth) {
        return;
    }
    happened_ = true;
    if (armed_->throws) {
        throw ForeignException(fmt::format("an exception thrown by the scenario at {}", point));
    }
    fail();
}

std::unique_ptr<sim::Device> make_faulty_device(sim::Device& inner, FaultPlan& plan) {
    return std::make_unique<FaultyDevice>(inner, plan);
}

RankStorage::RankStorage(Storage& inner, FaultPlan& plan, int rank)
    : inner_(inner), plan_(plan), rank_(rank) {}

void RankStorage::pass(std::string_view point, StorageOperation operation) {
    plan_.pass(point, [&] {
        throw StorageError(fmt::format("{}: {} of {} failed: the scenario breaks it",
                                       rank_text(rank_), point, operation.path),
                           {{"operation", std::string(point)},
                            {"rank", rank_text(rank_)},
                            {"file", operation.path},
                            {"reason", "injected"}});
    });
    log_.push_back(std::move(operation));
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
    pass("fsync", {"fsync_directory", path, "", 0, 0});
    inner_.sync_directory(path);
}

}  // namespace swaplab::harness::scenario
