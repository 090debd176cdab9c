#include "inspect/inspect.hpp"
#include "inspect/json.hpp"
#include "inspect/shard_table.hpp"
#include "inspect/table.hpp"

#include <fmt/format.h>

namespace swaplab::harness {
namespace {

std::string copies_in_words(const Coverage& coverage) {
    if (coverage.copies.empty()) {
        return "no element";
    }
    const int least = coverage.copies.begin()->first;
    const int most = coverage.copies.rbegin()->first;
    if (least != most) {
        return fmt::format("each {} to {} times", least, most);
    }
    return least == 1 ? "each once" : fmt::format("each {} times", least);
}

}  // namespace

ExitCode shard_command(const ShardOptions& options, std::ostream& out) {
    const ShardTable table = make_shard_table(options.shape, options.mesh, options.placements);
    if (options.json) {
        out << to_json(table) << "\n";
        return ExitCode::ok;
    }
    std::vector<std::vector<std::string>> lines{{"rank", "mesh", "local", "offset", "holds"}};
    for (const ShardRow& row : table.rows) {
        lines.push_back({std::to_string(row.rank), optim::to_string(row.coordinate),
                         optim::to_string(row.box.sizes), optim::to_string(row.box.offsets),
                         optim::numel(row.box.sizes) == 0 ? "nothing" : optim::to_string(row.box)});
    }
    out << aligned(lines, "")
        << fmt::format("{} of {} elements, {}\n", table.coverage.covered(), table.coverage.elements,
                       copies_in_words(table.coverage));
    return ExitCode::ok;
}

}  // namespace swaplab::harness
