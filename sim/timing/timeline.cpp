#include "swaplab/sim/timeline.hpp"

#include "swaplab/sim/error.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <queue>

namespace swaplab::sim {
namespace {

void check_profile(const DeviceProfile& profile) {
    const auto check = [&](const char* field, double value, bool may_be_zero) {
        if (!(value > 0 || (may_be_zero && value == 0))) {
            throw ArgumentError(
                fmt::format("timeline refused: {} of device profile \"{}\" is {}; give a positive "
                            "number",
                            field, profile.name, value),
                {{"operation", "timeline"}, {"profile", profile.name}, {"field", field}});
        }
    };
    check("copy_setup_seconds", profile.copy_setup_seconds, true);
    check("launch_seconds", profile.launch_seconds, true);
    check("upload_bytes_per_second", profile.upload_bytes_per_second, false);
    check("download_bytes_per_second", profile.download_bytes_per_second, false);
    check("upload_beside_download_bytes_per_second",
          profile.upload_beside_download_bytes_per_second, false);
    check("download_beside_upload_bytes_per_second",
          profile.download_beside_upload_bytes_per_second, false);
    check("kernel_bytes_per_second", profile.kernel_bytes_per_second, false);
    check("host_memory_bytes_per_second", profile.host_memory_bytes_per_second, false);
}

void check_edges(std::size_t rank, const TimedGraph& graph) {
    for (const OrderEdge& edge : graph.edges) {
        if (edge.before >= edge.after || edge.after >= graph.operations.size()) {
            throw ArgumentError(
                fmt::format("timeline refused: rank {}: an edge orders operation {} before {} of "
                            "{}; edges lead to later operations",
                            rank, edge.before, edge.after, graph.operations.size()),
                {{"operation", "timeline"},
                 {"rank", fmt::format("rank {}", rank)},
                 {"before", std::to_string(edge.before)},
                 {"after", std::to_string(edge.after)}});
        }
    }
}

/// What an engine is doing.
struct Job {
    std::uint32_t operation = 0;
    double setup_seconds = 0;
    double bytes = 0;
    double rate = 1;  ///< bytes per second while the set of running jobs stays as it is
    bool is_active = false;

    [[nodiscard]] bool moves_bytes() const noexcept {
        return is_active && setup_seconds == 0 && bytes > 0;
    }
    [[nodiscard]] double seconds_to_next_event() const noexcept {
        return setup_seconds > 0 ? setup_seconds : bytes / rate;
    }
    void pass(double seconds) noexcept {
        // Rounding must not leave a rest that is never worked off.
        const bool ends = seconds_to_next_event() <= seconds * (1 + 1e-12);
        if (setup_seconds > 0) {
            setup_seconds = ends ? 0 : setup_seconds - seconds;
        } else {
            bytes = ends ? 0 : bytes - rate * seconds;
        }
    }
};

/// One rank: what waits, what may run, what runs.
class Rank {
  public:
    Rank(const TimedGraph& graph, const DeviceProfile& profile)
        : graph_(graph),
          profile_(profile),
          times_(graph.operations.size()),
          missing_(graph.operations.size()),
          successors_(graph.operations.size()) {
        for (const OrderEdge& edge : graph.edges) {
            successors_[edge.before].push_back(edge.after);
            ++missing_[edge.after];
        }
        for (std::uint32_t operation = 0; operation < missing_.size(); ++operation) {
            if (missing_[operation] == 0) {
                may_run_.push_back(operation);
            }
        }
        settle(0);
    }

    [[nodiscard]] Job& upload() noexcept { return jobs_[index(Engine::upload)]; }
    [[nodiscard]] Job& download() noexcept { return jobs_[index(Engine::download)]; }
    [[nodiscard]] std::array<Job, 4>& jobs() noexcept { return jobs_; }
    [[nodiscard]] std::vector<OperationTime>& times() noexcept { return times_; }

    /// Ends what is done at `now` and begins what may.
    void settle(double now) {
        bool changed = true;
        while (changed) {
            end_done(now);
            admit(now);
            changed = begin_next(now);
        }
    }

    /// Rates of this rank's jobs as if it were alone on its host.
    void set_rates() noexcept {
        const bool both = upload().moves_bytes() && download().moves_bytes() &&
                          !SWAPLAB_MUTANT("timeline.duplex_is_free");
        upload().rate = both ? profile_.upload_beside_download_bytes_per_second
                             : profile_.upload_bytes_per_second;
        download().rate = both ? profile_.download_beside_upload_bytes_per_second
                               : profile_.download_bytes_per_second;
        jobs_[index(Engine::compute)].rate = profile_.kernel_bytes_per_second;
    }

  private:
    using FirstIssuedFirst =
        std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>>;

    static constexpr std::size_t index(Engine engine) noexcept {
        return static_cast<std::size_t>(engine);
    }
    static std::uint64_t picoseconds(double seconds) {
        return static_cast<std::uint64_t>(std::llround(seconds * 1e12));
    }

    void end_done(double now) {
        for (Job& job : jobs_) {
            if (job.is_active && job.setup_seconds == 0 && job.bytes == 0) {
                job.is_active = false;
                end(job.operation, now);
            }
        }
    }

    void end(std::uint32_t operation, double now) {
        times_[operation].end_picoseconds = picoseconds(now);
        for (const std::uint32_t next : successors_[operation]) {
            if (--missing_[next] == 0) {
                may_run_.push_back(next);
            }
        }
    }

    /// Sorts what may run by engine; what takes no time ends at once.
    void admit(double now) {
        for (std::size_t i = 0; i < may_run_.size(); ++i) {
            const std::uint32_t operation = may_run_[i];
            const Engine engine = graph_.operations[operation].engine;
            if (engine == Engine::none) {
                times_[operation].begin_picoseconds = picoseconds(now);
                end(operation, now);
            } else {
                queues_[index(engine)].push(operation);
            }
        }
        may_run_.clear();
    }

    bool begin_next(double now) {
        bool begun = false;
        for (const Engine engine : {Engine::upload, Engine::download, Engine::compute}) {
            Job& job = jobs_[index(engine)];
            FirstIssuedFirst& queue = queues_[index(engine)];
            if (job.is_active || queue.empty()) {
                continue;
            }
            const std::uint32_t operation = queue.top();
            queue.pop();
            times_[operation].begin_picoseconds = picoseconds(now);
            job = {
                operation,
                engine == Engine::compute ? profile_.launch_seconds : profile_.copy_setup_seconds,
                static_cast<double>(graph_.operations[operation].bytes), 1, true};
            begun = true;
        }
        return begun;
    }

    const TimedGraph& graph_;
    const DeviceProfile& profile_;
    std::vector<OperationTime> times_;
    std::vector<std::uint32_t> missing_;  ///< predecessors that have not ended
    std::vector<std::vector<std::uint32_t>> successors_;
    std::vector<std::uint32_t> may_run_;
    std::array<FirstIssuedFirst, 4> queues_;
    std::array<Job, 4> jobs_;
};

/// Slows the copies of all ranks down to what the host's memory gives.
void share_host_memory(std::vector<Rank>& ranks, double host_bytes_per_second) {
    std::vector<Job*> copies;
    double asked = 0;
    for (Rank& rank : ranks) {
        for (Job* job : {&rank.upload(), &rank.download()}) {
            if (job->moves_bytes()) {
                copies.push_back(job);
                asked += job->rate;
            }
        }
    }
    if (asked > host_bytes_per_second && !SWAPLAB_MUTANT("timeline.host_memory_is_free")) {
        for (Job* job : copies) {
            job->rate *= host_bytes_per_second / asked;
        }
    }
}

/// The jobs of all ranks that run now.
std::vector<Job*> active_jobs(std::vector<Rank>& ranks) {
    std::vector<Job*> jobs;
    for (Rank& rank : ranks) {
        for (Job& job : rank.jobs()) {
            if (job.is_active) {
                jobs.push_back(&job);
            }
        }
    }
    return jobs;
}

}  // namespace

std::vector<std::vector<OperationTime>> timeline(std::span<const TimedGraph> graphs,
                                                 const DeviceProfile& profile) {
    check_profile(profile);
    std::vector<Rank> ranks;
    ranks.reserve(graphs.size());
    for (std::size_t rank = 0; rank < graphs.size(); ++rank) {
        check_edges(rank, graphs[rank]);
        ranks.emplace_back(graphs[rank], profile);
    }
    double now = 0;
    for (auto jobs = active_jobs(ranks); !jobs.empty(); jobs = active_jobs(ranks)) {
        for (Rank& rank : ranks) {
            rank.set_rates();
        }
        share_host_memory(ranks, profile.host_memory_bytes_per_second);
        double step = std::numeric_limits<double>::infinity();
        for (const Job* job : jobs) {
            step = std::min(step, job->seconds_to_next_event());
        }
        now += step;
        for (Job* job : jobs) {
            job->pass(step);
        }
        for (Rank& rank : ranks) {
            rank.settle(now);
        }
    }
    std::vector<std::vector<OperationTime>> times;
    times.reserve(ranks.size());
    for (Rank& rank : ranks) {
        times.push_back(std::move(rank.times()));
    }
    return times;
}

}  // namespace swaplab::sim
