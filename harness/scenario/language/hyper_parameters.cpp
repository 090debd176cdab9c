#include "scenario/language/build.hpp"

#include "swaplab/optim/param_group.hpp"
#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace swaplab::harness::scenario {
namespace {

/// `patch` holds only the one value that `node` gives for `key`.
void check_alone(const HyperPatch& patch, const Node& node, const char* key,
                 Diagnostics& diagnostics) {
    optim::AdamWOptions options;
    patch.apply(options);
    try {
        optim::check_options(options);
    } catch (const sim::ArgumentError& error) {
        diagnostics.error("bad-value", node.at, error.what(), "torch.optim.AdamW refuses it");
        return;
    }
    if (node.number() > static_cast<double>(std::numeric_limits<float>::max())) {
        diagnostics.error("bad-value", node.at,
                          fmt::format("{} = {}: fp32 cannot hold it", key, show(node)));
    }
}

void read_betas(const Node& table, HyperPatch& patch, Diagnostics& diagnostics) {
    const Node* betas = table.find("betas");
    if (betas == nullptr || betas->items.size() != 2) {
        return;
    }
    for (const auto& [index, member] : {std::pair(std::size_t{0}, &HyperPatch::beta1),
                                        std::pair(std::size_t{1}, &HyperPatch::beta2)}) {
        const Node& node = betas->items[index];
        HyperPatch alone;
        alone.*member = node.number();
        patch.*member = node.number();
        check_alone(alone, node, "betas", diagnostics);
    }
}

}  // namespace

HyperPatch hyper_patch(const Node& table, Diagnostics& diagnostics) {
    HyperPatch patch;
    for (const auto& [key, member] :
         {std::pair("lr", &HyperPatch::lr), std::pair("eps", &HyperPatch::eps),
          std::pair("weight_decay", &HyperPatch::weight_decay)}) {
        const Node* node = table.find(key);
        if (node != nullptr && node->is_number()) {
            HyperPatch alone;
            alone.*member = node->number();
            patch.*member = node->number();
            check_alone(alone, *node, key, diagnostics);
        }
    }
    for (const auto& [key, member] : {std::pair("amsgrad", &HyperPatch::amsgrad),
                                      std::pair("maximize", &HyperPatch::maximize)}) {
        const Node* node = table.find(key);
        if (node != nullptr && node->is(Node::Kind::boolean)) {
            patch.*member = node->boolean;
        }
    }
    read_betas(table, patch, diagnostics);
    return patch;
}

void check_lr(const Node& value, Diagnostics& diagnostics) {
    HyperPatch alone;
    alone.lr = value.number();
    check_alone(alone, value, "lr", diagnostics);
}

}  // namespace swaplab::harness::scenario
