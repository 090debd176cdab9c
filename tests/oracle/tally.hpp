#pragma once

/// How the rows of one oracle file compare with this project.

#include <cstdint>
#include <exception>
#include <map>
#include <string>
#include <vector>

namespace swaplab::oracle {

class Tally {
  public:
    /// `kind`: "geometry", "planner", ... for people.
    Tally(std::string file, std::string kind) : file_(std::move(file)), kind_(std::move(kind)) {}

    void set_kind(std::string kind) { kind_ = std::move(kind); }
    void agree(std::int64_t rows = 1) { agree_ += rows; }
    /// A row that differs; `what` names it and says how.
    void differ(const std::string& what);
    /// Rows that this project does not cover, and why. Never counted as agreement.
    void unsupported(const std::string& why, std::int64_t rows = 1) { unsupported_[why] += rows; }
    /// agree() when `problem` is empty, else differ(row + ": " + problem).
    void row(const std::string& name, const std::string& problem);
    /// row(name, compare()), where an exception is a problem too: one broken row must not hide the
    /// others.
    template <class Compare>
    void judge(const std::string& name, Compare compare) {
        try {
            row(name, compare());
        } catch (const std::exception& error) {
            row(name, error.what());
        }
    }

    [[nodiscard]] const std::string& file() const noexcept { return file_; }
    [[nodiscard]] const std::string& kind() const noexcept { return kind_; }
    [[nodiscard]] std::int64_t agreeing() const noexcept { return agree_; }
    [[nodiscard]] std::int64_t differing() const noexcept { return differ_; }
    [[nodiscard]] std::int64_t not_supported() const;
    [[nodiscard]] std::int64_t rows() const { return agree_ + differ_ + not_supported(); }
    [[nodiscard]] const std::vector<std::string>& first_differences() const noexcept {
        return first_differences_;
    }
    [[nodiscard]] const std::map<std::string, std::int64_t>& reasons() const noexcept {
        return unsupported_;
    }

    /// "FILE   kind   N agree, N differ, N not supported" and indented lines about the latter two.
    [[nodiscard]] std::string to_text() const;

  private:
    std::string file_;
    std::string kind_;
    std::int64_t agree_ = 0;
    std::int64_t differ_ = 0;
    std::map<std::string, std::int64_t> unsupported_;
    std::vector<std::string> first_differences_;
};

}  // namespace swaplab::oracle
