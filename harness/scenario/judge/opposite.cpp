#include "scenario/judge/judge.hpp"

namespace swaplab::harness::scenario {
namespace {

Node other_value(Node value) {
    switch (value.kind) {
        case Node::Kind::integer:
            ++value.integer;
            break;
        case Node::Kind::real:
            value.real += 1.0;
            break;
        case Node::Kind::boolean:
            value.boolean = !value.boolean;
            break;
        case Node::Kind::text:
            value.text += "'";
            break;
        case Node::Kind::list:
            if (!value.items.empty()) {
                value.items.front() = other_value(value.items.front());
            }
            break;
        case Node::Kind::table:
            if (!value.entries.empty()) {
                value.entries.front().value = other_value(value.entries.front().value);
            }
            break;
        case Node::Kind::date:
            break;
    }
    return value;
}

void shift(Amount& amount, std::int64_t by) {
    amount.terms.push_back({by, 0, Unit::none, 1});
    amount.text += by > 0 ? " + 1" : " - 1";
}

Relation other_relation(Relation relation) {
    switch (relation) {
        case Relation::same_as:
            return Relation::differs_from;
        case Relation::differs_from:
            return Relation::same_as;
        case Relation::at_most:
            return Relation::at_least;
        case Relation::at_least:
            return Relation::at_most;
        case Relation::present:
            return Relation::absent;
        case Relation::absent:
            return Relation::present;
        case Relation::equals:
            return Relation::equals;
    }
    return relation;
}

}  // namespace

Expectation opposite(const Expectation& expectation) {
    Expectation out = expectation;
    out.relation = other_relation(expectation.relation);
    switch (expectation.subject) {
        case Subject::runs:
            out.subject = Subject::error;
            out.error = {};
            out.error.leaves = ErrorSpec::Leaves::anything;
            return out;
        case Subject::refused:
        case Subject::error:
            out.subject = Subject::runs;
            return out;
        case Subject::findings:
            out.names = expectation.names.empty() ? std::vector<std::string>{"race"}
                                                  : std::vector<std::string>{};
            return out;
        case Subject::buffers:
            if (expectation.word == "kind") {
                out.names = {expectation.names.front() == "pinned" ? "device" : "pinned"};
            }
            return out;
        default:
            break;
    }
    if (expectation.value) {
        out.value = other_value(*expectation.value);
    }
    if (out.amount) {
        shift(*out.amount, expectation.relation == Relation::at_least ? -1 : 1);
    }
    return out;
}

}  // namespace swaplab::harness::scenario
