#pragma once

/// The parts of a rank's record as bytes.

#include "scenario/play/rank_record.hpp"

#include "swaplab/sim/message.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace swaplab::harness::scenario {

/// Writes or reads values. Each type names its fields once, for both directions, so that they
/// cannot differ. Reading asserts that the bytes come from a Wire.
class Wire {
  public:
    Wire() = default;
    explicit Wire(std::string bytes) : message_(std::move(bytes)), reading_(true) {}

    [[nodiscard]] const std::string& bytes() const noexcept { return message_.bytes(); }

    template <class... T>
    void operator()(T&... values) {
        (one(values), ...);
    }
    template <class T>
    void write(const T& value) {
        one(const_cast<T&>(value));  // a writing wire changes nothing
    }

  private:
    template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>) void one(T& value) {
        if (reading_) {
            value = static_cast<T>(message_.number());
        } else {
            message_.put(static_cast<std::uint64_t>(value));
        }
    }
    template <class T>
    std::size_t size(const T& container) {
        std::size_t count = container.size();
        one(count);
        return count;
    }
    template <class T>
    void one(std::vector<T>& list) {
        const std::size_t count = size(list);
        if (reading_) {
            list.resize(count);
        }
        for (T& each : list) {
            one(each);
        }
    }
    template <class K, class V>
    void one(std::map<K, V>& map) {
        const std::size_t count = size(map);
        if (!reading_) {
            for (auto& [key, value] : map) {
                write(key);
                one(value);
            }
            return;
        }
        for (std::size_t i = 0; i < count; ++i) {
            K key{};
            one(key);
            one(map[std::move(key)]);
        }
    }
    template <class T, std::size_t N>
    void one(std::array<T, N>& list) {
        for (T& each : list) {
            one(each);
        }
    }
    template <class A, class B>
    void one(std::pair<A, B>& pair) {
        (*this)(pair.first, pair.second);
    }
    template <class T>
    void one(std::optional<T>& value) {
        bool there = value.has_value();
        one(there);
        if (there) {
            one(reading_ ? value.emplace() : *value);
        } else {
            value.reset();
        }
    }

    void one(std::string& text);
    void one(std::vector<std::byte>& bytes);
    void one(double& value);
    void one(const std::byte*& identity);
    void one(optim::Placement& placement);
    void one(optim::ShardSpec& shard);
    void one(optim::Tensor& tensor);
    void one(optim::Value& value);
    void one(optim::Dict& dict);
    void one(sim::ErrorField& field);
    void one(sim::Finding& finding);
    void one(sim::TraceEvent& event);
    void one(StorageOperation& operation);
    void one(Bytes2& bytes);
    void one(MemoryFigures& figures);
    void one(StepError& error);
    void one(UnitValues& units);
    void one(History& history);
    void one(CapturedTensor& tensor);
    void one(CapturedView& view);
    void one(RankState& state);
    void one(GlobalTensor& tensor);
    void one(GlobalView& view);
    void one(GlobalState& state);
    void one(OrderChoice& choice);
    void one(CoverRow& row);
    void one(FileRow& row);
    void one(SavedContent& content);
    void one(LookedAt& looked_at);
    void one(Saved& saved);
    void one(StepRecord& record);
    template <std::size_t I = 0>
    void alternative(std::size_t index, optim::Value::Data& data);

    sim::Message message_;
    bool reading_ = false;
};

}  // namespace swaplab::harness::scenario
