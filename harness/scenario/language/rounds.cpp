#include "scenario/language/rounds.hpp"

#include <fmt/format.h>

#include <utility>

namespace swaplab::harness::scenario {
namespace {

using Kind = Node::Kind;

void append_round(const std::vector<Node>& steps, std::size_t round, std::vector<Node>& out) {
    for (const Node& step : steps) {
        out.push_back(step);
        Node* label = out.back().is(Kind::table) ? out.back().find("label") : nullptr;
        if (label != nullptr && label->is(Kind::text) && round > 1) {
            label->text += fmt::format("-{}", round);
        }
    }
}

std::vector<Node> unrolled(std::vector<Node> steps) {
    std::vector<Node> out;
    for (Node& step : steps) {
        Node* repeat = step.is(Kind::table) ? step.find("repeat") : nullptr;
        Node* rounds = repeat != nullptr ? repeat->find("rounds") : nullptr;
        Node* body = repeat != nullptr ? repeat->find("do") : nullptr;
        if (rounds != nullptr && rounds->is(Kind::integer) && body != nullptr &&
            body->is(Kind::list)) {
            body->items = unrolled(std::move(body->items));
            const auto size = static_cast<std::int64_t>(body->items.size());
            constexpr auto most = static_cast<std::int64_t>(max_steps);
            const bool fits =
                rounds->integer >= 2 && rounds->integer <= most && rounds->integer * size <= most;
            for (std::int64_t round = 1; fits && round <= rounds->integer; ++round) {
                append_round(body->items, static_cast<std::size_t>(round), out);
            }
        }
        out.push_back(std::move(step));
    }
    return out;
}

/// { repeat = N, do = [..] } is short for { repeat = { rounds = N, do = [..] } }.
void spell_out(std::vector<Node>& steps) {
    for (Node& step : steps) {
        Node* repeat = step.is(Kind::table) ? step.find("repeat") : nullptr;
        if (repeat != nullptr && repeat->is(Kind::integer)) {
            Node table = make_table(repeat->at);
            table.set("rounds", *repeat);
            if (const Node* body = step.find("do")) {
                table.set("do", *body);
                step.erase("do");
            }
            *step.find("repeat") = std::move(table);
        }
        repeat = step.is(Kind::table) ? step.find("repeat") : nullptr;
        Node* body = repeat != nullptr ? repeat->find("do") : nullptr;
        if (body != nullptr) {
            spell_out(body->items);
        }
    }
}

}  // namespace

void unroll_rounds(Node& document) {
    Node* steps = document.find("step");
    if (steps != nullptr && steps->is(Kind::list)) {
        spell_out(steps->items);
        steps->items = unrolled(std::move(steps->items));
    }
}

}  // namespace swaplab::harness::scenario
