#include "inspect/finding_blocks.hpp"
#include "inspect/table.hpp"
#include "inspect/text.hpp"

#include "swaplab/sim/units.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace swaplab::harness {
namespace {

using sim::count_of;
using sim::format_bytes;
using sim::with_thousands;

std::size_t chunk_count(const InspectReport& report, const std::set<std::string>& keys) {
    std::size_t count = 0;
    for (const TensorReport& tensor : report.tensors) {
        count += keys.contains(tensor.key) ? tensor.chunks.size() : 0;
    }
    return count;
}

}  // namespace

std::string exchanged_chunks_text(const InspectReport& report, const Findings& findings,
                                  const Look& look) {
    Rows rows;
    for (const Finding* f : findings) {
        const std::uint64_t size = size_of(f->header->dtype);
        const auto bytes = static_cast<std::uint64_t>(f->elements_lost) * size;
        rows.push_back(
            {with_shape(f->key, f->saved),
             optim::to_string(*f->chunk) + "   " + format_bytes(bytes),
             fmt::format("{}, {}", place_of(f->item), format_bytes(f->item->length_bytes)),
             optim::to_string(f->header->stored_shape) + "   " +
                 format_bytes(f->header->payload_bytes)});
    }
    const auto keys = keys_of(findings);
    const Sums sums = sums_of(findings);
    return fmt::format(
               "finding  exchanged-chunks: {} of {} chunks of {} name another item than the one "
               "stored; {} cannot be reached\n",
               findings.size(), chunk_count(report, keys),
               keys.size() == 1 ? *keys.begin() : count_of(keys.size(), "key"),
               share(sums.lost, sums.elements, "elements")) +
           rows_text(std::move(rows), {"key", ".metadata says", "file, item", "item holds"}, look) +
           line("means",
                "all data are in the files, addresses are swapped. PyTorch: the same ranks "
                "on the version that wrote it load silently") +
           line("",
                "and miss these rows; a load that assembles the tensor stops with an assertion "
                "after other rows were overwritten") +
           line("cause",
                "as written by torch 2.14 and 2.15 for uneven FSDP over TP (the directory "
                "does not name its writer)") +
           line("do",
                "save the model again with a version that writes it correctly (torch 2.8 does); "
                "the data files themselves are whole");
}

}  // namespace swaplab::harness
