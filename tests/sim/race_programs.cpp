#include "race_programs.hpp"

#include "device_contract.hpp"

#include <algorithm>
#include <map>

namespace swaplab::sim::race_programs {
namespace {

/// What is ordered before what, step by step: the set of all earlier steps.
class Order {
  public:
    using Before = std::vector<bool>;

    explicit Order(const Program& program)
        : streams_(program.stream_count), marks_(program.event_count) {}

    void add(const Step& step) {
        Before before = step.stream ? united(streams_[*step.stream], host_) : host_;
        if (step.op == Op::wait) {
            before = united(before, marks_[step.event]);
        }
        if (step.op == Op::synchronize) {
            host_ = united(host_, marks_[step.event]);
            before = host_;
        }
        Before own = before;
        own.resize(steps_.size() + 1);
        own[steps_.size()] = true;
        if (step.stream) {
            streams_[*step.stream] = own;
        } else {
            host_ = own;  // whatever is issued from now on
        }
        if (step.op == Op::record) {
            marks_[step.event] = own;
        }
        steps_.push_back(std::move(before));
    }
    [[nodiscard]] bool ordered(std::size_t earlier, std::size_t later) const {
        return earlier < steps_[later].size() && steps_[later][earlier];
    }
    /// What a step issued now to `stream`, or done by the host, would be ordered after.
    [[nodiscard]] bool covers(std::optional<std::size_t> stream, std::size_t earlier) const {
        const Before before = stream ? united(streams_[*stream], host_) : host_;
        return earlier < before.size() && before[earlier];
    }

  private:
    static Before united(Before a, const Before& b) {
        a.resize(std::max(a.size(), b.size()));
        for (std::size_t i = 0; i < b.size(); ++i) {
            a[i] = a[i] || b[i];
        }
        return a;
    }

    std::vector<Before> streams_;
    std::vector<Before> marks_;
    Before host_;
    std::vector<Before> steps_;
};

bool conflict(const Use& a, const Use& b) {
    return a.memory == b.memory && (a.writes || b.writes) && a.begin < b.end && b.begin < a.end;
}

class Generator {
  public:
    explicit Generator(std::uint64_t seed) : rng_(seed), order_(start(rng_)) {
        program_ = {1 + Rng(seed).below(4), events, {}};
        for (int i = 0; i < 2; ++i) {
            allocate_pinned();
        }
        allocate();
        for (int i = 0; i < 30; ++i) {
            act();
        }
        while (!device_.empty()) {
            free_one();
        }
        while (!pinned_.empty()) {
            free_pinned();
        }
        for (std::size_t stream = 0; stream < program_.stream_count; ++stream) {
            order_after(stream, std::nullopt);
        }
    }
    Program take() { return std::move(program_); }

  private:
    static constexpr std::size_t events = 5;
    static constexpr std::uint64_t pinned_bytes = 256;
    struct Memory {
        std::size_t number;
        std::uint64_t bytes;
    };

    static Program start(const Rng& seed) {
        Rng rng = seed;
        return {1 + rng.below(4), events, {}};
    }

    void act() {
        switch (rng_.below(10)) {
            case 0:
                return device_.size() < 4 ? allocate() : free_one();
            case 1:
                return device_.size() > 1 ? free_one() : allocate();
            case 2:
                if (rng_.below(3) == 0) {
                    free_pinned();
                    allocate_pinned();
                }
                return;
            case 3:
                return add({Op::host_read, {}, 0, {part(pick(pinned_), false)}});
            case 4:
                return add({Op::host_write, {}, 0, {part(pick(pinned_), true)}});
            case 5:
                return add({Op::add, any_stream(), 0, {part(pick(device_), true)}});
            case 6:
                return add({Op::fill, any_stream(), 0, {part(pick(device_), true)}});
            case 7:
                return copy(Op::upload, pick(pinned_), pick(device_));
            case 8:
                return copy(Op::download, pick(device_), pick(pinned_));
            default:
                if (device_.size() > 1) {
                    copy(Op::copy, device_[0], device_[1]);
                }
        }
    }

    void allocate() {
        const Memory memory{numbers_++, 64 * (1 + rng_.below(4))};
        const Use whole{memory.number, 0, memory.bytes, true};
        add({Op::allocate, any_stream(), 0, {whole}});
        add({Op::fill, any_stream(), 0, {whole}});
        device_.push_back(memory);
    }
    void free_one() {
        const std::size_t at = rng_.below(device_.size());
        add({Op::free, any_stream(), 0, {{device_[at].number, 0, device_[at].bytes, true}}});
        device_.erase(device_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    void allocate_pinned() {
        pinned_.push_back({numbers_++, pinned_bytes});
        add({Op::allocate_pinned, {}, 0, {{pinned_.back().number, 0, pinned_bytes, true}}});
    }
    void free_pinned() {
        add({Op::free_pinned, {}, 0, {{pinned_.front().number, 0, pinned_bytes, true}}});
        pinned_.erase(pinned_.begin());
    }
    void copy(Op op, const Memory& from, const Memory& to) {
        Use source = part(from, false);
        Use target = part(to, true);
        const std::uint64_t bytes = std::min(source.end - source.begin, target.end - target.begin);
        source.end = source.begin + bytes;
        target.end = target.begin + bytes;
        add({op, any_stream(), 0, {source, target}});
    }

    /// Half of the time one of four equal parts, so that many accesses only touch each other.
    Use part(const Memory& memory, bool writes) {
        if (rng_.below(2) == 0) {
            const std::uint64_t quarter = memory.bytes / 4;
            const std::uint64_t at = quarter * rng_.below(4);
            return {memory.number, at, at + quarter, writes};
        }
        const std::uint64_t begin = rng_.below(memory.bytes);
        return {memory.number, begin, begin + 1 + rng_.below(memory.bytes - begin), writes};
    }
    const Memory& pick(const std::vector<Memory>& from) { return from[rng_.below(from.size())]; }
    std::size_t any_stream() { return rng_.below(program_.stream_count); }

    /// Orders the step after everything that it conflicts with, youngest first, and appends it.
    void add(const Step& step) {
        for (std::size_t earlier = program_.steps.size(); earlier-- > 0;) {
            const Step other = program_.steps[earlier];
            const bool touch = std::any_of(step.uses.begin(), step.uses.end(), [&](const Use& a) {
                return std::any_of(other.uses.begin(), other.uses.end(),
                                   [&a](const Use& b) { return conflict(a, b); });
            });
            if (touch && !order_.covers(step.stream, earlier)) {
                order_after(*other.stream, step.stream);
            }
        }
        append(step);
    }
    void order_after(std::size_t before, std::optional<std::size_t> after) {
        next_event_ = (next_event_ + 1) % events;
        append({Op::record, before, next_event_, {}});
        append({after ? Op::wait : Op::synchronize, after, next_event_, {}});
    }
    void append(const Step& step) {
        order_.add(step);
        program_.steps.push_back(step);
    }

    Rng rng_;
    Order order_;
    Program program_;
    std::vector<Memory> device_;
    std::vector<Memory> pinned_;
    std::size_t numbers_ = 0;
    std::size_t next_event_ = 0;
};

/// Runs steps on a device.
class Player {
  public:
    Player(const Program& program, Device& device) : device_(device) {
        for (std::size_t i = 0; i < program.stream_count; ++i) {
            streams_.emplace_back(device, stream_name(i));
        }
        for (std::size_t i = 0; i < program.event_count; ++i) {
            events_.emplace_back(device);
        }
    }

    void play(const Step& step, CallSite site) {
        if (step.stream) {
            return on_stream(step, streams_[*step.stream].ref(), site);
        }
        switch (step.op) {
            case Op::allocate_pinned:
                at_[step.uses[0].memory] = static_cast<std::byte*>(
                    device_.allocate_pinned(step.uses[0].end, tag_of(step.uses[0].memory), site));
                return;
            case Op::free_pinned:
                return device_.deallocate_pinned(address(step.uses[0]), site);
            case Op::synchronize:
                return device_.synchronize(events_[step.event].ref(), site);
            default:
                return on_host(step, site);
        }
    }
    std::vector<std::byte> read;

  private:
    std::byte* address(const Use& use) { return at_.at(use.memory) + use.begin; }

    void on_host(const Step& step, CallSite site) {
        const Use& use = step.uses[0];
        std::byte* const begin = address(use);
        device_.host_access(begin, use.end - use.begin, use.writes ? Access::write : Access::read,
                            site);
        if (use.writes) {
            std::fill_n(begin, use.end - use.begin, static_cast<std::byte>(site.line));
        } else {
            read.insert(read.end(), begin, begin + (use.end - use.begin));
        }
    }

    void on_stream(const Step& step, StreamRef stream, CallSite site) {
        const Use use = step.uses.empty() ? Use{} : step.uses[0];
        const std::uint64_t bytes = use.end - use.begin;
        switch (step.op) {
            case Op::allocate:
                at_[use.memory] = static_cast<std::byte*>(
                    device_.allocate(bytes, stream, tag_of(use.memory), site));
                return;
            case Op::free:
                return device_.deallocate(address(use), stream, site);
            case Op::fill:
                return device_.fill_async(address(use), static_cast<std::byte>(site.line), bytes,
                                          stream, site);
            case Op::add:
                return device_.launch(add_kernel(address(use), bytes, 1), stream, site);
            case Op::record:
                return device_.record(events_[step.event], stream, site);
            case Op::wait:
                return device_.wait(stream, events_[step.event], site);
            default:
                return device_.copy_async(address(step.uses[1]), address(use), bytes,
                                          step.op == Op::upload ? CopyDirection::host_to_device
                                          : step.op == Op::download
                                              ? CopyDirection::device_to_host
                                              : CopyDirection::device_to_device,
                                          stream, site);
        }
    }

    Device& device_;
    std::vector<Stream> streams_;
    std::vector<Event> events_;
    std::map<std::size_t, std::byte*> at_;
};

}  // namespace

Program make_correct(std::uint64_t seed) {
    return Generator(seed).take();
}

std::set<Unordered> unordered_pairs(const Program& program) {
    Order order(program);
    std::set<Unordered> pairs;
    for (std::size_t later = 0; later < program.steps.size(); ++later) {
        order.add(program.steps[later]);
        for (std::size_t earlier = 0; earlier < later; ++earlier) {
            for (const Use& a : program.steps[earlier].uses) {
                for (const Use& b : program.steps[later].uses) {
                    if (conflict(a, b) && !order.ordered(earlier, later)) {
                        pairs.insert({earlier, later, a.memory});
                    }
                }
            }
        }
    }
    return pairs;
}

std::string stream_name(std::size_t stream) {
    return "s" + std::to_string(stream);
}

std::string tag_of(std::size_t memory) {
    return "memory " + std::to_string(memory);
}

std::vector<std::byte> run(const Program& program, Device& device) {
    Player player(program, device);
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
        player.play(program.steps[i], {"steps", static_cast<int>(i)});
    }
    return player.read;
}

}  // namespace swaplab::sim::race_programs
