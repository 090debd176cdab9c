#pragma once

/// One function per kind of oracle file; each adds every row of the file to the tally. They throw
/// sim::ArgumentError when the file is not of its format.

#include "json_value.hpp"
#include "tally.hpp"

#include "swaplab/harness/storage.hpp"

#include <string>

namespace swaplab::oracle {

/// Calls `check(row, "NAME INDEX")` for each of `rows`; what it throws is a difference of that row.
template <class Check>
void each_row(const Value& rows, const std::string& name, Tally& tally, Check check) {
    for (std::size_t i = 0; i < items(rows).size(); ++i) {
        const std::string numbered = name + " " + std::to_string(i);
        try {
            check(items(rows)[i], numbered);
        } catch (const std::exception& error) {
            tally.differ(numbered + ": " + error.what());
        }
    }
}

void check_geometry(const Value& file, Tally& tally);
void check_other_geometry(const Value& file, Tally& tally);
void check_adamw(const Value& file, Tally& tally);
void check_resume(const Value& file, Tally& tally);
void check_cast_spy(const Value& file, Tally& tally);
void check_shard(const Value& file, Tally& tally);

}  // namespace swaplab::oracle
