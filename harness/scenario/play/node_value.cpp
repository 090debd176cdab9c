#include "scenario/play/node_value.hpp"

namespace swaplab::harness::scenario {

optim::Value to_value(const Node& node) {
    switch (node.kind) {
        case Node::Kind::integer:
            return node.integer;
        case Node::Kind::real:
            return node.real;
        case Node::Kind::boolean:
            return node.boolean;
        case Node::Kind::text:
            return node.text;
        case Node::Kind::list: {
            optim::List list;
            for (const Node& item : node.items) {
                list.items.push_back(to_value(item));
            }
            return list;
        }
        default:
            return {};
    }
}

}  // namespace swaplab::harness::scenario
