/// Shard preservation: every element of every global tensor is stored exactly once, and comes back
/// to the rank that owns it, for any pair of worlds.

#include "property.hpp"
#include "training.hpp"

#include "swaplab/harness/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace swaplab::properties {
namespace {

using harness::Checkpoint;

void check_stored_once(const std::string& key, const harness::TensorEntry& entry) {
    std::int64_t stored = 0;
    for (std::size_t i = 0; i < entry.chunks.size(); ++i) {
        const optim::Box& box = entry.chunks[i].box;
        stored += optim::numel(box.sizes);
        for (std::size_t other = 0; other < i; ++other) {
            const auto common = optim::intersect(box, entry.chunks[other].box);
            PROP_TRUE(!common, key + " stores " + optim::to_string(*common) + " twice");
        }
    }
    PROP_TRUE(
        stored == optim::numel(entry.global_shape),
        fmt::format("{} stores {} of {} elements", key, stored, optim::numel(entry.global_shape)));
}

void check_stored(Checkpoint& checkpoint, const std::string& key, const optim::Shape& shape,
                  const std::vector<float>& expected) {
    const harness::MetadataEntry* entry = checkpoint.metadata().find(key);
    PROP_TRUE(entry != nullptr && entry->tensor() != nullptr, key + " is not stored");
    PROP_TRUE(entry->tensor()->global_shape == shape,
              key + " is stored as " + optim::to_string(entry->tensor()->global_shape));
    check_stored_once(key, *entry->tensor());
    const std::vector<std::byte> bytes = checkpoint.read_tensor(key);
    PROP_TRUE(std::equal(bytes.begin(), bytes.end(), std::as_bytes(std::span(expected)).begin(),
                         std::as_bytes(std::span(expected)).end()),
              key + " is stored with other bits");
}

void check_checkpoint(const Story& story, harness::Storage& storage) {
    Checkpoint checkpoint(storage, "x");
    const GlobalStates expected = uninterrupted(story, story.steps_before);
    const std::size_t with_state = groups_at(story, story.steps_before);
    for (std::size_t g = 0; g < story.groups.size(); ++g) {
        for (const StoryParam& param : story.groups[g].params) {
            const GlobalState& state = expected.at(param.name);
            check_stored(checkpoint, "model." + param.name, param.shape, state.param);
            for (const auto& [key, values] : state.moments) {
                if (g < with_state) {
                    check_stored(checkpoint, "optimizer.state." + param.name + "." + key,
                                 param.shape, values);
                }
            }
        }
    }
}

Property shards_survive(const Subject& subject) {
    return [subject](const Story& given) {
        Story story = given;
        story.via = Story::Via::dcp;
        const Outcome outcome = run(story, subject);
        check_checkpoint(story, *outcome.storage);
        const std::string differs =
            difference(uninterrupted(story, story.steps_before + story.steps_after), outcome.state);
        PROP_TRUE(differs.empty(), differs);
    };
}

TEST(ShardPreservation, HoldsForSwapAdamW) {
    must_hold(shards_survive(swap_adamw()));
}

TEST(ShardPreservation, HoldsForTheSpecimenWithoutDefects) {
    must_hold(shards_survive(specimen({})));
}

TEST(ShardPreservation, FindsPlainLocalMoments) {
    must_be_caught(shards_survive(specimen({"local_moments"})), "is stored as");
}

TEST(ShardPreservation, FindsParametersWithoutState) {
    must_be_caught(shards_survive(specimen({"drops_added_groups"})), "has no optimizer state");
}

TEST(ShardPreservation, FindsMomentsThatDoNotComeBack) {
    must_be_caught(shards_survive(specimen({"reinit_on_load"})), ".step: expected");
}

}  // namespace
}  // namespace swaplab::properties
