#pragma once

/// The files of `swaplab run --trace DIR`.

#include "scenario/language/model.hpp"
#include "scenario/play/record.hpp"

#include "swaplab/harness/storage.hpp"

#include <memory>
#include <string>
#include <vector>

namespace swaplab::harness::cli {

/// Writes, for each process of a run, STEM[.passN].processN.rankN.trace per rank and one chart of
/// them all, STEM[.passN].processN.chart.json.
class TraceWriter {
  public:
    /// Makes `directory`. Throws StorageError unless that is new or empty: nothing is overwritten.
    explicit TraceWriter(const std::string& directory);

    /// `traces`: by pass of the run's fault. Throws StorageError; what was written whole stays.
    void write(const scenario::Run& run,
               const std::vector<std::vector<scenario::RankTrace>>& traces);

    /// "3 traces and 2 charts in DIR".
    [[nodiscard]] std::string summary() const;

  private:
    void write_process(const std::string& stem, const std::vector<scenario::RankTrace>& ranks);

    std::unique_ptr<Storage> storage_;
    std::string directory_;
    std::size_t traces_ = 0;
    std::size_t charts_ = 0;
};

}  // namespace swaplab::harness::cli
