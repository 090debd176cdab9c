#include "checkpoint/plan_wire.hpp"

#include "swaplab/sim/assert.hpp"
#include "swaplab/sim/message.hpp"

namespace swaplab::harness {
namespace {

void put(sim::Message& message, const Shape& shape) {
    message.put(std::uint64_t{shape.size()});
    for (const std::int64_t size : shape) {
        message.put(static_cast<std::uint64_t>(size));
    }
}

Shape take_shape(sim::Message& message) {
    Shape shape(message.number());
    for (std::int64_t& size : shape) {
        size = static_cast<std::int64_t>(message.number());
    }
    return shape;
}

void put(sim::Message& message, const optim::Value& path_part) {
    const auto* index = path_part.get_if<std::int64_t>();
    message.put(std::uint64_t{index != nullptr});
    if (index != nullptr) {
        message.put(static_cast<std::uint64_t>(*index));
        return;
    }
    const auto* name = path_part.get_if<std::string>();
    SWAPLAB_ASSERT(name != nullptr, "a path part is a text or a number");
    message.put(*name);
}

optim::Value take_path_part(sim::Message& message) {
    if (message.number() != 0) {
        return static_cast<std::int64_t>(message.number());
    }
    return message.text();
}

}  // namespace

std::string pack_plan(const LocalPlan& plan) {
    sim::Message message;
    message.put(std::uint64_t{plan.size()});
    for (const WriteItem& item : plan) {
        message.put(item.key);
        message.put(static_cast<std::uint64_t>(item.kind));
        put(message, item.box.offsets);
        put(message, item.box.sizes);
        put(message, item.global_shape);
        message.put(static_cast<std::uint64_t>(item.dtype));
        message.put(std::uint64_t{item.pin_memory});
        message.put(std::uint64_t{item.path.size()});
        for (const optim::Value& part : item.path) {
            put(message, part);
        }
    }
    return message.bytes();
}

LocalPlan unpack_plan(const std::string& bytes) {
    sim::Message message(bytes);
    LocalPlan plan(message.number());
    for (WriteItem& item : plan) {
        item.key = message.text();
        item.kind = static_cast<WriteItem::Kind>(message.number());
        item.box.offsets = take_shape(message);
        item.box.sizes = take_shape(message);
        item.global_shape = take_shape(message);
        item.dtype = static_cast<sim::DType>(message.number());
        item.pin_memory = message.number() != 0;
        const std::uint64_t parts = message.number();
        for (std::uint64_t i = 0; i < parts; ++i) {
            item.path.push_back(take_path_part(message));
        }
    }
    return plan;
}

std::string pack_items(const std::vector<StoredItem>& items) {
    sim::Message message;
    message.put(std::uint64_t{items.size()});
    for (const StoredItem& item : items) {
        message.put(item.relative_path);
        message.put(item.offset_bytes);
        message.put(item.length_bytes);
    }
    return message.bytes();
}

std::vector<StoredItem> unpack_items(const std::string& bytes) {
    sim::Message message(bytes);
    std::vector<StoredItem> items(message.number());
    for (StoredItem& item : items) {
        item.relative_path = message.text();
        item.offset_bytes = message.number();
        item.length_bytes = message.number();
    }
    return items;
}

}  // namespace swaplab::harness
