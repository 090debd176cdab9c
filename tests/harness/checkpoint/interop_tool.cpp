/// The C++ half of script/interop.
///
///   interop_tool write RANKS DIR    writes a checkpoint with many kinds of content
///   interop_tool rewrite FROM TO    reads all of FROM and writes it again from one rank
///   interop_tool digest DIR         one line per key: dtype, shape and SHA-256, or the value

#include "swaplab/harness/checkpoint.hpp"
#include "swaplab/sim/digest.hpp"
#include "swaplab/sim/random.hpp"
#include "swaplab/sim/world.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstring>

namespace swaplab::tests {
namespace {

using optim::Dict;
using optim::Placement;
using optim::Shape;
using optim::Tensor;
using optim::Value;

/// This rank's part of a tensor whose global bytes are a function of its name alone.
Tensor tensor_of(const std::string& name, sim::DType dtype, const Shape& shape,
                 const std::vector<Placement>& placements, int ranks, int rank) {
    const std::uint64_t item = sim::size_of(dtype);
    std::vector<std::byte> all(static_cast<std::uint64_t>(optim::numel(shape)) * item);
    sim::Rng rng(sim::hash_text(name));
    for (std::byte& byte : all) {
        byte = static_cast<std::byte>(rng.below(dtype == sim::DType::boolean ? 2 : 120));
    }
    optim::Box box{Shape(shape.size(), 0), shape};
    std::optional<optim::ShardSpec> spec;
    if (!placements.empty()) {
        spec = optim::ShardSpec{shape, {ranks}, placements, {}};
        box = spec->box_of(rank).value();
    }
    const auto elements = optim::numel(box.sizes);
    auto storage = optim::make_host_storage(static_cast<std::uint64_t>(elements) * item);
    for (std::int64_t i = 0; i < elements; ++i) {
        std::int64_t rest = i;
        std::int64_t element = 0;
        std::int64_t stride = 1;
        for (std::size_t dim = shape.size(); dim-- > 0;) {
            element += (box.offsets[dim] + rest % box.sizes[dim]) * stride;
            rest /= box.sizes[dim];
            stride *= shape[dim];
        }
        storage->write(static_cast<std::uint64_t>(i) * item,
                       std::span(all).subspan(static_cast<std::uint64_t>(element) * item, item));
    }
    return {dtype, box.sizes, std::move(storage), spec};
}

Value tree_of(int ranks, int rank) {
    const std::vector<Placement> rows{Placement::shard(0)};
    const std::vector<Placement> columns{Placement::shard(1)};
    Dict model;
    const auto add = [&](const std::string& name, sim::DType dtype, const Shape& shape,
                         const std::vector<Placement>& placements) {
        model.set(name, tensor_of(name, dtype, shape, placements, ranks, rank));
    };
    add("rows", sim::DType::float32, {7, 3}, rows);
    add("columns", sim::DType::float32, {4, 5}, columns);
    add("few", sim::DType::float64, {1, 4}, rows);
    add("none", sim::DType::float32, {0, 4}, rows);
    add("deep", sim::DType::bfloat16, {3, 2, 2, 2, 2}, rows);
    add("large", sim::DType::float32, {1500, 257}, rows);
    for (const sim::DType dtype :
         {sim::DType::float16, sim::DType::int8, sim::DType::int16, sim::DType::int32,
          sim::DType::int64, sim::DType::uint8, sim::DType::boolean, sim::DType::uint16,
          sim::DType::uint32, sim::DType::uint64}) {
        add(std::string(sim::name_of(dtype)), dtype, {3, 5}, {});
    }
    Dict state;
    for (const char* fqn : {"rows", "layers.0.weight"}) {
        Dict leaves;
        leaves.set("step", optim::make_scalar(3));
        for (const char* key : {"exp_avg", "exp_avg_sq"}) {
            leaves.set(key, tensor_of(std::string(fqn) + key, sim::DType::float32, {7, 3}, rows,
                                      ranks, rank));
        }
        state.set(fqn, std::move(leaves));
    }
    Dict group;
    group.set("lr", 0.01);
    group.set("betas", optim::Tuple{{0.9, 0.999}});
    group.set("eps", 1e-8);
    group.set("foreach", optim::None{});
    group.set("amsgrad", false);
    group.set("params", optim::List{{"rows", "layers.0.weight"}});
    Dict optimizer;
    optimizer.set("state", std::move(state));
    optimizer.set("param_groups", optim::List{{std::move(group)}});
    Dict extra;
    extra.set("big", optim::BigInt{"-170141183460469231731687303715884105728"});
    extra.set("bytes", optim::PyBytes{std::string("\0\xff", 2)});
    extra.set("no_bytes", optim::PyBytes{});
    extra.set("negative", std::int64_t{-70000});
    extra.set("wide", std::int64_t{1} << 40);
    extra.set("five", optim::Tuple{{std::int64_t{1}, "a", optim::None{}, true, 2.5}});
    extra.set("empty", optim::List{});
    Dict tree;
    tree.set("model", std::move(model));
    tree.set("optimizer", std::move(optimizer));
    tree.set("extra", std::move(extra));
    return tree;
}

void save(int ranks, const std::string& directory, const std::function<Value(int rank)>& tree_for) {
    const auto storage = harness::make_posix_storage();
    sim::rethrow_first(sim::run_ranks({.size = ranks}, [&](sim::Communicator& communicator) {
        harness::save_checkpoint(communicator, *storage, directory, tree_for(communicator.rank()));
    }));
}

void print_digest(const std::string& directory) {
    const auto storage = harness::make_posix_storage();
    harness::Checkpoint checkpoint(*storage, directory);
    for (const harness::MetadataEntry& entry : checkpoint.metadata().entries) {
        std::string line;
        if (const harness::TensorEntry* tensor = entry.tensor()) {
            line = fmt::format("{} {} {} {}", entry.key, sim::name_of(tensor->dtype),
                               optim::to_string(tensor->global_shape),
                               sim::sha256_hex(checkpoint.read_tensor(entry.key)));
        } else {
            line = fmt::format("{} {}", entry.key, optim::repr(checkpoint.read_value(entry.key)));
        }
        std::puts(line.c_str());
    }
}

int run(const std::vector<std::string>& arguments) {
    if (arguments.size() == 3 && arguments[0] == "write") {
        const int ranks = std::stoi(arguments[1]);
        save(ranks, arguments[2], [&](int rank) { return tree_of(ranks, rank); });
    } else if (arguments.size() == 3 && arguments[0] == "rewrite") {
        const auto storage = harness::make_posix_storage();
        const Value tree = harness::Checkpoint(*storage, arguments[1]).read_all();
        save(1, arguments[2], [&](int) { return tree; });
    } else if (arguments.size() == 2 && arguments[0] == "digest") {
        print_digest(arguments[1]);
    } else {
        std::fputs("usage: interop_tool write RANKS DIR | rewrite FROM TO | digest DIR\n", stderr);
        return 2;
    }
    return 0;
}

}  // namespace
}  // namespace swaplab::tests

int main(int argc, char** argv) {
    try {
        return swaplab::tests::run({argv + 1, argv + argc});
    } catch (const std::exception& error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 1;
    }
}
