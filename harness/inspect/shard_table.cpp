#include "inspect/shard_table.hpp"

#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string>

namespace swaplab::harness {
namespace {

constexpr int max_ranks = 65536;

[[noreturn]] void refuse(std::string_view option, std::string_view text, std::string_view example) {
    throw sim::ArgumentError(fmt::format("{} \"{}\" cannot be read; for example {} \"{}\"", option,
                                         text, option, example),
                             {{"argument", std::string(option)}, {"found", std::string(text)}});
}

/// Parts of `text` between the separators that stand outside parentheses.
std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    std::size_t begin = 0;
    int depth = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        const char c = i < text.size() ? text[i] : separator;
        depth += c == '(' ? 1 : c == ')' ? -1 : 0;
        if (c == separator && (depth == 0 || i == text.size())) {
            parts.push_back(text.substr(begin, i - begin));
            begin = i + 1;
        }
    }
    return parts;
}

std::string_view trim(std::string_view text) {
    const auto first = text.find_first_not_of(' ');
    return first == std::string_view::npos
               ? std::string_view{}
               : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

optim::Shape read_sizes(std::string_view option, std::string_view text, char separator,
                        std::string_view example) {
    optim::Shape sizes;
    if (trim(text).empty()) {
        return sizes;
    }
    for (std::string_view part : split(text, separator)) {
        part = trim(part);
        std::int64_t size = -1;
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), size);
        if (error != std::errc{} || end != part.data() + part.size() || size < 0) {
            refuse(option, text, example);
        }
        sizes.push_back(size);
    }
    return sizes;
}

std::vector<optim::Placement> read_placements(std::string_view text) {
    std::vector<optim::Placement> placements;
    for (const std::string_view part : split(text, ',')) {
        const auto placement = optim::placement_from_text(trim(part));
        if (!placement) {
            refuse("--placements", text, "S0,R");
        }
        placements.push_back(*placement);
    }
    return placements;
}

}  // namespace

ShardTable make_shard_table(std::string_view shape, std::string_view mesh,
                            std::string_view placements) {
    ShardTable table;
    table.spec.global_shape = read_sizes("--shape", shape, ',', "5,3");
    table.spec.mesh = read_sizes("--mesh", mesh, 'x', "2x2");
    table.spec.placements = read_placements(placements);
    const std::int64_t ranks = optim::numel(table.spec.mesh);
    if (table.spec.mesh.empty() || ranks < 1 || ranks > max_ranks) {
        refuse("--mesh", mesh, "2x2");
    }
    std::vector<optim::Box> boxes;
    for (int rank = 0; rank < static_cast<int>(ranks); ++rank) {
        const auto coordinate = optim::mesh_coordinate(table.spec.mesh, rank).value();
        boxes.push_back(optim::local_box(table.spec.global_shape, table.spec.mesh,
                                         table.spec.placements, coordinate));
        table.rows.push_back({rank, coordinate, boxes.back()});
    }
    table.coverage = cover(table.spec.global_shape, boxes);
    return table;
}

}  // namespace swaplab::harness
