#pragma once

/// What one rank of one process did and saw. A value: ranks share nothing, so that the same story
/// runs as fibers, threads and processes. Their records are brought together when all have ended.

#include "scenario/play/record.hpp"
#include "scenario/play/saves.hpp"

#include <map>
#include <string>
#include <vector>

namespace swaplab::harness::scenario {

/// What expectations look into after one step.
struct LookedAt {
    std::map<std::string, SavedContent> directories;  ///< rank 0 reads them for all
    std::map<std::string, RankState> dicts;           ///< the rank's own part of each
};

struct RankRecord {
    std::size_t at = 0;        ///< the step that it did last
    bool reached_end = false;  ///< of its process
    RankState start;           ///< after construction, where that is no step
    std::map<std::size_t, StepRecord> steps;
    std::map<std::size_t, LookedAt> looked_at;
    Saves saves;
    std::vector<sim::Finding> findings;  ///< of the end, when everything was destroyed
    std::uint64_t execution_digest = 0;  ///< as of the last step that it ended
    std::vector<std::byte> trace_file;   ///< of its device, where the run is traced
    std::vector<OrderChoice> choices;    ///< as of then
};

/// Writes a record to a file as it grows, part by part, so that what a rank did stays known after
/// its process was killed. Throws StorageError. Threads: one.
class RecordJournal {
  public:
    explicit RecordJournal(const std::string& path);
    ~RecordJournal();
    RecordJournal(const RecordJournal&) = delete;
    RecordJournal& operator=(const RecordJournal&) = delete;

    void write_start(const RankRecord& record);
    /// The step that is begun: `record.at`.
    void write_at(const RankRecord& record);
    /// Step `record.at`, and the digest so far.
    void write_step(const RankRecord& record);
    /// What was looked at after step `record.at`.
    void write_looked_at(const RankRecord& record);
    void write_saved(const RankRecord& record, const std::string& name);
    void write_end(const RankRecord& record);

  private:
    class Part;
    void append(const Part& part);

    std::string path_;
    int file_ = -1;
};

/// Adds to `record` what was written to the journal at `path`. A last part that was not written
/// whole, because its writer was killed, is left out; so is a file that was never made.
void read_journal(const std::string& path, RankRecord& record);

}  // namespace swaplab::harness::scenario
