#include "inspect/diff_report.hpp"

#include "inspect/element.hpp"

#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

namespace swaplab::harness {
namespace {

constexpr std::uint64_t block_bytes = std::uint64_t{1} << 20U;

/// A value as the other tools write it: true, None, ["a", "b"], (0.9, 0.999).
std::string show(const optim::Value& value) {
    const auto all = [](const std::vector<optim::Value>& items) {
        std::vector<std::string> texts;
        std::transform(items.begin(), items.end(), std::back_inserter(texts), show);
        return fmt::format("{}", fmt::join(texts, ","));
    };
    if (const auto* flag = value.get_if<bool>()) {
        return *flag ? "true" : "false";
    }
    if (const auto* text = value.get_if<std::string>()) {
        return "\"" + *text + "\"";
    }
    if (const auto* list = value.get_if<optim::List>()) {
        return "[" + all(list->items) + "]";
    }
    if (const auto* tuple = value.get_if<optim::Tuple>()) {
        return "(" + all(tuple->items) + ")";
    }
    return optim::repr(value);
}

std::string show(Checkpoint& checkpoint, const MetadataEntry& entry) {
    if (const TensorEntry* tensor = entry.tensor()) {
        return fmt::format("tensor {} {}", optim::to_string(tensor->global_shape),
                           short_name_of(tensor->dtype));
    }
    return show(checkpoint.read_value(entry.key));
}

Shape index_of(std::int64_t flat, const Shape& shape) {
    Shape index(shape.size(), 0);
    for (std::size_t dim = shape.size(); dim-- > 0;) {
        index[dim] = flat % shape[dim];
        flat /= shape[dim];
    }
    return index;
}

/// Adds the elements of one block, which begins at flat index `begin`, to `difference`.
void compare_block(std::span<const std::byte> a, std::span<const std::byte> b, std::int64_t begin,
                   Difference& difference) {
    const sim::DType dtype = difference.dtype;
    const std::uint64_t size = size_of(dtype);
    for (std::uint64_t i = 0; i < a.size() / size; ++i) {
        if (std::memcmp(a.data() + i * size, b.data() + i * size, size) == 0) {
            continue;
        }
        const std::uint64_t a_bits = bits_at(dtype, a, i);
        const std::uint64_t b_bits = bits_at(dtype, b, i);
        const double distance =
            std::fabs(value_of_bits(dtype, a_bits) - value_of_bits(dtype, b_bits));
        difference.largest =
            std::isnan(distance) ? difference.largest : std::max(difference.largest, distance);
        if (difference.elements_different++ == 0) {
            const std::int64_t flat = begin + static_cast<std::int64_t>(i);
            difference.first = {index_of(flat, difference.shape), a_bits, b_bits,
                                ulp_distance(dtype, a_bits, b_bits)};
        }
    }
}

std::optional<Difference> compare_tensors(Checkpoint& a, Checkpoint& b, const std::string& key,
                                          const TensorEntry& in_a, const TensorEntry& in_b) {
    Difference difference;
    difference.key = key;
    if (in_a.global_shape != in_b.global_shape && !SWAPLAB_MUTANT("inspect.diff_shape")) {
        difference.kind = DifferenceKind::shape;
        difference.a = optim::to_string(in_a.global_shape);
        difference.b = optim::to_string(in_b.global_shape);
        return difference;
    }
    if (in_a.dtype != in_b.dtype) {
        difference.kind = DifferenceKind::dtype;
        difference.a = short_name_of(in_a.dtype);
        difference.b = short_name_of(in_b.dtype);
        return difference;
    }
    difference.dtype = in_a.dtype;
    difference.shape = in_a.global_shape;
    const std::uint64_t size = size_of(in_a.dtype);
    const std::uint64_t bytes = static_cast<std::uint64_t>(optim::numel(in_a.global_shape)) * size;
    const Box whole{Shape(in_a.global_shape.size(), 0), in_a.global_shape};
    std::vector<std::byte> from_a;
    std::vector<std::byte> from_b;
    for (std::uint64_t done = 0; done < bytes; done += from_a.size()) {
        from_a.resize(std::min(block_bytes, bytes - done));
        from_b.resize(from_a.size());
        a.read_box(key, whole, done, from_a);
        b.read_box(key, whole, done, from_b);
        compare_block(from_a, from_b, static_cast<std::int64_t>(done / size), difference);
    }
    return difference.elements_different == 0 ? std::nullopt : std::optional(difference);
}

std::optional<Difference> compare(Checkpoint& a, Checkpoint& b, const MetadataEntry& in_a,
                                  const MetadataEntry& in_b) {
    if (in_a.tensor() != nullptr && in_b.tensor() != nullptr) {
        return compare_tensors(a, b, in_a.key, *in_a.tensor(), *in_b.tensor());
    }
    Difference difference;
    difference.key = in_a.key;
    difference.kind = DifferenceKind::value;
    if (in_a.tensor() == nullptr && in_b.tensor() == nullptr) {
        if (optim::same_value(a.read_value(in_a.key), b.read_value(in_b.key))) {
            return std::nullopt;
        }
    } else {
        difference.kind = DifferenceKind::kind;
    }
    difference.a = show(a, in_a);
    difference.b = show(b, in_b);
    return difference;
}

StoredAs stored_as(const Metadata& metadata) {
    std::set<std::string> files;
    StoredAs result;
    const auto add = [&](const std::optional<StoredItem>& item) {
        if (item) {
            files.insert(item->relative_path);
            ++result.items;
        }
    };
    for (const MetadataEntry& entry : metadata.entries) {
        if (const TensorEntry* tensor = entry.tensor()) {
            for (const StoredChunk& chunk : tensor->chunks) {
                add(chunk.stored);
            }
        } else {
            add(std::get<BytesEntry>(entry.data).stored);
        }
    }
    result.files = files.size();
    return result;
}

}  // namespace

std::string_view name_of(DifferenceKind kind) noexcept {
    switch (kind) {
        case DifferenceKind::values:
            return "differs";
        case DifferenceKind::shape:
            return "shape";
        case DifferenceKind::dtype:
            return "dtype";
        case DifferenceKind::kind:
            return "kind";
        case DifferenceKind::value:
            break;
    }
    return "value";
}

ExitCode DiffReport::exit_code() const noexcept {
    return differences.empty() && only_a.empty() && only_b.empty() ? ExitCode::ok
                                                                   : ExitCode::failed;
}

DiffReport diff_checkpoints(Checkpoint& a, Checkpoint& b) {
    DiffReport report;
    report.a = a.directory();
    report.b = b.directory();
    for (const MetadataEntry& entry : a.metadata().entries) {
        const MetadataEntry* other = b.find(entry.key);
        if (other == nullptr) {
            report.only_a.push_back(entry.key);
        } else if (auto difference = compare(a, b, entry, *other)) {
            report.differences.push_back(std::move(*difference));
        } else {
            ++report.equal;
        }
    }
    for (const MetadataEntry& entry : b.metadata().entries) {
        if (a.find(entry.key) == nullptr && !SWAPLAB_MUTANT("inspect.diff_only_b")) {
            report.only_b.push_back(entry.key);
        }
    }
    report.stored_a = stored_as(a.metadata());
    report.stored_b = stored_as(b.metadata());
    return report;
}

}  // namespace swaplab::harness
