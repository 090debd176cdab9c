#include "scenario/play/rank_record.hpp"
#include "scenario/play/record_wire.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <system_error>
#include <unistd.h>

namespace swaplab::harness::scenario {
namespace {

enum class PartKind : std::uint8_t { start, at, step, looked_at, saved, end };

[[noreturn]] void fail(const std::string& operation, const std::string& path) {
    const std::string reason = std::generic_category().message(errno);
    throw StorageError(fmt::format("cannot {} {}, the record of a rank: {}; set TMPDIR to a "
                                   "directory that can be written and has space",
                                   operation, path, reason),
                       {{"operation", operation}, {"file", path}, {"reason", reason}});
}

void add(Wire& wire, RankRecord& record) {
    PartKind kind{};
    std::string name;
    wire(kind);
    switch (kind) {
        case PartKind::start:
            return wire(record.start, record.execution_digest, record.choices);
        case PartKind::at:
            wire(record.at);
            record.steps[record.at].reached = true;
            return;
        case PartKind::step:
            wire(record.at);
            return wire(record.steps[record.at], record.execution_digest, record.choices);
        case PartKind::looked_at:
            return wire(record.looked_at[record.at]);
        case PartKind::saved:
            wire(name);
            return wire(record.saves[name]);
        case PartKind::end:
            return wire(record.reached_end, record.findings, record.choices, record.trace_file);
    }
}

}  // namespace

/// Its size, then what a Wire makes of it.
class RecordJournal::Part {
  public:
    explicit Part(PartKind kind) { wire_(kind); }

    template <class... T>
    Part& add(const T&... values) {
        (wire_.write(values), ...);
        return *this;
    }
    [[nodiscard]] std::string bytes() const {
        const std::uint64_t size = wire_.bytes().size();
        return std::string(reinterpret_cast<const char*>(&size), sizeof size) + wire_.bytes();
    }

  private:
    Wire wire_;
};

RecordJournal::RecordJournal(const std::string& path)
    : path_(path), file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {
    if (file_ < 0) {
        fail("open", path_);
    }
}

RecordJournal::~RecordJournal() {
    ::close(file_);
}

void RecordJournal::append(const Part& part) {
    const std::string bytes = part.bytes();
    std::size_t written = 0;
    while (written < bytes.size()) {
        const auto count = ::write(file_, bytes.data() + written, bytes.size() - written);
        if (count < 0 && errno != EINTR) {
            fail("write", path_);
        }
        written += count > 0 ? static_cast<std::size_t>(count) : 0;
    }
}

void RecordJournal::write_start(const RankRecord& record) {
    append(Part(PartKind::start).add(record.start, record.execution_digest, record.choices));
}

void RecordJournal::write_at(const RankRecord& record) {
    append(Part(PartKind::at).add(record.at));
}

void RecordJournal::write_step(const RankRecord& record) {
    append(
        Part(PartKind::step)
            .add(record.at, record.steps.at(record.at), record.execution_digest, record.choices));
}

void RecordJournal::write_looked_at(const RankRecord& record) {
    append(Part(PartKind::looked_at).add(record.looked_at.at(record.at)));
}

void RecordJournal::write_saved(const RankRecord& record, const std::string& name) {
    append(Part(PartKind::saved).add(name, record.saves.at(name)));
}

void RecordJournal::write_end(const RankRecord& record) {
    append(Part(PartKind::end)
               .add(record.reached_end, record.findings, record.choices, record.trace_file));
}

void read_journal(const std::string& path, RankRecord& record) {
    std::ifstream in(path, std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    std::size_t begin = 0;
    std::uint64_t size = 0;
    while (all.size() - begin >= sizeof size) {
        std::memcpy(&size, all.data() + begin, sizeof size);
        begin += sizeof size;
        if (all.size() - begin < size) {
            return;
        }
        Wire wire(all.substr(begin, size));
        add(wire, record);
        begin += size;
    }
}

}  // namespace swaplab::harness::scenario
