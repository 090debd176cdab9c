#pragma once

/// One function per kind of oracle file; each adds every row of the file to the tally. They throw
/// sim::ArgumentError when the file is not of its format.

#include "json_value.hpp"
#include "tally.hpp"

#include "swaplab/harness/storage.hpp"

#include <string>

namespace swaplab::oracle {

void check_geometry(const Value& file, Tally& tally);
void check_other_geometry(const Value& file, Tally& tally);
void check_adamw(const Value& file, Tally& tally);
void check_resume(const Value& file, Tally& tally);
void check_cast_spy(const Value& file, Tally& tally);
void check_shard(const Value& file, Tally& tally);

}  // namespace swaplab::oracle
