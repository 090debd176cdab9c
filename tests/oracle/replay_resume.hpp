#pragma once

/// Resumes in one process, repeated with the specimens and with ours.

#include "replay.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace swaplab::oracle {

/// Changes the live groups before the k-th step (from 0) after the load.
using Edit = std::function<void(optim::Optimizer& optimizer, std::size_t k)>;
/// The moment after the load, then after each further step.
using Trace = std::vector<Entry>;

/// What all cases of a file share.
struct ResumeData {
    std::vector<std::pair<std::string, Shape>> shapes;
    Values initial;
    std::vector<Values> gradients;
    std::vector<Values> other_gradients;
};
[[nodiscard]] ResumeData read_resume_data(const Value& file);

/// Of two optimizers that loaded one live dict.
struct SharedDict {
    bool target_changed = false;           ///< when the source stepped
    std::vector<std::string> source_keys;  ///< of its first parameter's state, sorted
    std::vector<std::string> shared;       ///< keys whose tensor both optimizers hold
};

struct Resumed {
    Trace trace;
    bool group_is_live = false;     ///< the next step uses what param_groups() shows
    bool moments_are_live = false;  ///< the next step reads the buffers that state_dict() shows
    std::optional<SharedDict> dict;
};

/// One resume: train N steps, save, bring the state back in one of several ways, go on.
class Resume {
  public:
    /// `n`: steps before the save. Keeps a reference to `data`.
    Resume(const ResumeData& data, const optim::AdamWOptions& options, std::size_t n);

    [[nodiscard]] Trace uninterrupted(const Variant& variant, std::size_t count,
                                      const Edit& edit) const;
    /// `kind`: one of resume_kinds().
    [[nodiscard]] Resumed resumed(const Variant& variant, const std::string& kind,
                                  std::size_t count, const Edit& edit) const;

  private:
    void train(Run& run) const;
    [[nodiscard]] Resumed follow(Run& run, std::size_t count, const Edit& edit) const;
    [[nodiscard]] Resumed into_another(Run& first, sim::Device& device,
                                       sim::Communicator& communicator, const Variant& variant,
                                       const std::string& kind, std::size_t count,
                                       const Edit& edit) const;
    [[nodiscard]] Resumed into_itself(Run& run, const Variant& variant, const std::string& kind,
                                      std::size_t count, const Edit& edit) const;

    const ResumeData& data_;
    std::size_t n_;
    ModelSpec model_;
};

/// fresh, fresh_other_hp, stepped, disk, in_process, self_load, in_process_live_dict,
/// two_from_one_live_dict.
[[nodiscard]] const std::vector<std::string>& resume_kinds();

}  // namespace swaplab::oracle
