#include "checkpoint/block_writer.hpp"
#include "checkpoint/item_writer.hpp"
#include "checkpoint/metadata_codec.hpp"
#include "checkpoint/paths.hpp"
#include "checkpoint/plan_wire.hpp"
#include "checkpoint/planner.hpp"
#include "checkpoint/publisher.hpp"
#include "checkpoint/storage_error.hpp"

#include "swaplab/harness/checkpoint.hpp"
#include "swaplab/sim/agreement.hpp"
#include "swaplab/sim/digest.hpp"
#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

namespace swaplab::harness {
namespace {

using Kind = WriteItem::Kind;

constexpr std::uint64_t framing_bytes = 1577;  ///< of one tensor item, about

std::uint64_t payload_bytes(const WriteItem& item) {
    if (item.kind == Kind::bytes) {
        return 0;
    }
    return static_cast<std::uint64_t>(optim::numel(item.box.sizes)) * sim::size_of(item.dtype);
}

/// Like a UUID, but a digest of what was saved: results do not depend on chance.
std::string save_id_of(const Metadata& metadata) {
    const std::string encoded = encode_metadata(metadata);
    const std::string hex = sim::sha256_hex(std::as_bytes(std::span(encoded)));
    return fmt::format("{}-{}-8{}-a{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 3),
                       hex.substr(15, 3), hex.substr(18, 12));
}

/// One rank's part of one save.
class Saver {
  public:
    Saver(sim::Communicator& communicator, Storage& storage, const std::string& directory,
          const optim::Value& tree, const SaveOptions& options)
        : communicator_(communicator),
          storage_(storage),
          options_(options),
          tree_(tree),
          publisher_(options.make_publisher ? options.make_publisher(storage, directory)
                                            : std::make_unique<Publisher>(storage, directory)) {}

    SaveReport run() {
        make_plan();
        agree("validate", [&] {
            begin("validate");
            kept_ = deduplicate(plans_, options_.dedup_to_lowest_rank);
            global_ = make_global_plan(plans_, kept_);
        });
        const auto prepare = [&] {
            replaces_ = storage_.exists(publisher_->directory());
            explained([&] { publisher_->prepare(communicator_.rank()); });
        };
        if (publisher_->prepares_alone()) {
            prepare();
            communicator_.barrier();
        } else {
            agree("prepare", prepare);
        }
        std::vector<StoredItem> mine;
        agree("write", [&] {
            begin("stage");
            explained([&] { mine = write_file(); });
        });
        const SaveReport report = collect(mine);
        // A refusal by some rank's callback must come before the names change.
        agree("begin to publish", [&] {
            begin("publish");
            tell("publish", planned_bytes());
        });
        agree("publish", [&] {
            if (is_first()) {
                explained([&] { publisher_->publish(encoded_metadata_); });
            }
        });
        return report;
    }

  private:
    [[nodiscard]] bool is_first() const { return communicator_.rank() == 0; }
    [[nodiscard]] std::size_t rank() const {
        return static_cast<std::size_t>(communicator_.rank());
    }

    /// Names the directory, too: ranks that save into different ones never agree.
    [[nodiscard]] std::string purpose(const std::string& phase) const {
        return "save_checkpoint of " + publisher_->directory() + ": " + phase;
    }
    void agree(const std::string& phase, const std::function<void()>& work,
               sim::CallSite site = sim::CallSite::here()) const {
        sim::agree(communicator_, purpose(phase), work, site);
    }
    [[nodiscard]] std::vector<std::string> gather(
        const std::string& mine, const std::string& phase,
        sim::CallSite site = sim::CallSite::here()) const {
        return communicator_.all_gather_object(mine, purpose(phase), site);
    }

    void begin(std::string_view phase) const {
        if (options_.on_phase) {
            options_.on_phase(phase);
        }
    }
    void tell(std::string_view phase, std::uint64_t done) const {
        if (options_.progress) {
            options_.progress(phase, done, planned_bytes());
        }
    }

    void make_plan() {
        LocalPlan plan;
        agree("plan", [&] {
            begin("plan");
            leaves_ = flatten(tree_);
            for (const Leaf& leaf : leaves_) {
                check_value(leaf);
            }
            plan = make_local_plan(leaves_, communicator_.rank());
        });
        for (const WriteItem& item : plan) {
            leaf_of_position_.push_back(item.leaf);
        }
        for (const std::string& bytes : gather(pack_plan(plan), "exchange plans")) {
            plans_.push_back(unpack_plan(bytes));
        }
    }

    static void check_value(const Leaf& leaf) {
        if (leaf.value.get_if<optim::Tensor>() != nullptr) {
            return;
        }
        try {
            static_cast<void>(pickle_of(leaf.value));
        } catch (const sim::ArgumentError& error) {
            sim::ErrorFields fields = error.fields();
            fields.push_back({"operation", "save_checkpoint"});
            fields.push_back({"key", leaf.key});
            throw sim::ArgumentError(fmt::format("{} cannot be saved: {}", leaf.key, error.what()),
                                     std::move(fields));
        }
    }

    /// Payload of this rank's items.
    [[nodiscard]] std::uint64_t planned_bytes() const {
        std::uint64_t bytes = 0;
        for (const std::size_t position : kept_[rank()]) {
            bytes += payload_bytes(plans_[rank()][position]);
        }
        return bytes;
    }

    /// All files, about.
    [[nodiscard]] std::uint64_t needed_bytes() const {
        std::uint64_t bytes = 0;
        for (std::size_t r = 0; r < kept_.size(); ++r) {
            for (const std::size_t position : kept_[r]) {
                bytes += payload_bytes(plans_[r][position]) + framing_bytes;
            }
        }
        return bytes;
    }

    /// Runs `work`; what the storage says about a file is told as what it means for the save.
    template <class Work>
    void explained(Work work) const {
        try {
            work();
        } catch (const StorageError& error) {
            const std::string old = replaces_ ? publisher_->directory() + " is untouched"
                                              : "nothing appeared under that name";
            const std::string text = fmt::format(
                "saving {} failed on rank {}: {}\n  the save needs about {}; {}\n  do  save again; "
                "or remove {}",
                publisher_->directory(), communicator_.rank(), error.what(),
                sim::format_bytes(needed_bytes()), old, publisher_->incomplete());
            sim::ErrorFields fields = error.fields();
            fields.push_back({"rank", fmt::format("rank {}", communicator_.rank())});
            fields.push_back({"needed_bytes", std::to_string(needed_bytes())});
            fields.push_back({"left_behind", publisher_->incomplete()});
            throw StorageError(text, std::move(fields));
        }
    }

    /// Values first, then tensors, each in plan order. The result is in plan order.
    std::vector<StoredItem> write_file() {
        const std::string name = fmt::format("__{}_0.distcp", communicator_.rank());
        const std::unique_ptr<WritableFile> file =
            storage_.create(join_path(publisher_->incomplete(), name));
        BlockWriter out(*file, options_.chunk_bytes);
        const std::vector<PlannedItem>& planned = global_.by_rank[rank()];
        std::vector<StoredItem> items(planned.size());
        std::uint64_t done = 0;
        for (const bool tensors : {false, true}) {
            for (std::size_t i = 0; i < planned.size(); ++i) {
                const WriteItem& item = plans_[rank()][planned[i].position];
                if ((item.kind != Kind::bytes) != tensors) {
                    continue;
                }
                const std::uint64_t offset = out.position();
                const optim::Value& value = leaves_[leaf_of_position_[planned[i].position]].value;
                const auto* tensor = value.get_if<optim::Tensor>();
                const std::uint64_t length = tensor != nullptr ? write_tensor_item(out, *tensor)
                                                               : write_value_item(out, value);
                items[i] = {name, offset, length};
                done += payload_bytes(item);
                tell("write", done);
            }
        }
        out.flush();
        publisher_->finish(*file);
        return items;
    }

    /// Everybody's items become the metadata.
    SaveReport collect(const std::vector<StoredItem>& mine) {
        SaveReport report;
        const std::vector<std::string> all = gather(pack_items(mine), "exchange items");
        for (std::size_t r = 0; r < all.size(); ++r) {
            const std::vector<StoredItem> items = unpack_items(all[r]);
            for (std::size_t i = 0; i < items.size(); ++i) {
                const PlannedItem& planned = global_.by_rank[r][i];
                MetadataEntry& entry = global_.entries[planned.entry];
                if (auto* tensor = std::get_if<TensorEntry>(&entry.data)) {
                    tensor->chunks[static_cast<std::size_t>(*planned.index_hint)].stored = items[i];
                } else {
                    std::get<BytesEntry>(entry.data).stored = items[i];
                }
                report.bytes += items[i].length_bytes;
            }
        }
        Metadata metadata{global_.entries, global_.state_dict_order, publisher_->directory(), "",
                          std::nullopt};
        metadata.save_id = save_id_of(metadata);
        encoded_metadata_ = encode_metadata(metadata);
        report.files = all.size() + 1;
        report.bytes += encoded_metadata_.size();
        return report;
    }

    sim::Communicator& communicator_;
    Storage& storage_;
    const SaveOptions& options_;
    const optim::Value& tree_;
    std::unique_ptr<Publisher> publisher_;
    std::vector<Leaf> leaves_;
    bool replaces_ = false;
    std::vector<std::size_t> leaf_of_position_;
    std::vector<LocalPlan> plans_;
    std::vector<std::vector<std::size_t>> kept_;
    GlobalPlan global_;
    std::string encoded_metadata_;
};

}  // namespace

SaveReport save_checkpoint(sim::Communicator& communicator, Storage& storage,
                           const std::string& directory, const optim::Value& tree,
                           const SaveOptions& options) {
    return Saver(communicator, storage, directory, tree, options).run();
}

}  // namespace swaplab::harness
