#include "oracle_check.hpp"

#include "checks.hpp"
#include "support/checkpoint_expectation.hpp"
#include "support/planner_expectation.hpp"

#include <algorithm>
#include <exception>

namespace swaplab::oracle {
namespace {

std::string read_text(harness::Storage& storage, const std::string& path) {
    const auto file = storage.open(path);
    std::string content(file->size(), '\0');
    file->read(0, std::as_writable_bytes(std::span(content.data(), content.size())));
    return content;
}

bool is_directory(harness::Storage& storage, const std::string& path) {
    const std::size_t slash = path.find_last_of('/');
    const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
    const auto entries = storage.list(parent);
    return name.empty() || name == "." || name == ".." ||
           std::any_of(entries.begin(), entries.end(), [&](const harness::DirectoryEntry& entry) {
               return entry.name == name && entry.is_directory;
           });
}

/// How a kind of file is told, what it is called, and who compares it.
struct Kind {
    const char* name;
    bool (*is)(const Value& file);
    void (*check)(const Value& file, Tally& tally);
};

/// The first element of array `key`, when there is one and it is an object.
const Value* first_of(const Value& file, const char* key) {
    const Value* array = find(file, key);
    return array != nullptr && is_array(*array) && !items(*array).empty() ? &items(*array).front()
                                                                          : nullptr;
}

bool has(const Value* object, const char* key) {
    return object != nullptr && find(*object, key) != nullptr;
}

std::int64_t rows_of(const Value& array) {
    return static_cast<std::int64_t>(items(array).size());
}

constexpr Kind kinds[] = {
    {"geometry", [](const Value& file) { return has(&file, "torch") && has(&file, "table"); },
     check_geometry},
    {"geometry of other versions",
     [](const Value& file) {
         const Value* versions = find(file, "torch");
         return versions != nullptr && is_object(*versions) && !has(&file, "table");
     },
     check_other_geometry},
    {"AdamW vectors",
     [](const Value& file) {
         const Value* one = first_of(file, "cases");
         return has(one, "cls") && has(one, "grads");
     },
     check_adamw},
    {"resume cases",
     [](const Value& file) { return has(&file, "other_gradients") && has(&file, "cases"); },
     check_resume},
    {"latent cases", [](const Value& file) { return has(first_of(file, "cases"), "results"); },
     [](const Value& file, Tally& tally) {
         for (const Value& one : items(at(file, "cases"))) {
             tally.unsupported(
                 "behaviour of Python's classes, not replayed: " + text(at(one, "case")),
                 static_cast<std::int64_t>(members(at(one, "results")).size()));
         }
     }},
    {"state dict cases",
     [](const Value& file) { return has(&file, "python") && has(&file, "cases"); },
     [](const Value& file, Tally& tally) {
         tally.unsupported("behaviour of a Python snippet", rows_of(at(file, "cases")));
     }},
    {"state dict semantics", [](const Value& file) { return has(&file, "scenarios"); },
     [](const Value& file, Tally& tally) {
         tally.unsupported("behaviour of Python's state dict functions",
                           rows_of(at(file, "scenarios")));
     }},
    {"damage", [](const Value& file) { return has(&file, "entries") && has(&file, "doc"); },
     [](const Value& file, Tally& tally) {
         tally.unsupported("damaged directories, which the tests of the reader make",
                           rows_of(at(file, "entries")));
     }},
    {"shard cases",
     [](const Value& file) {
         const Value* one = first_of(file, "cases");
         return has(one, "world") && has(one, "loads");
     },
     check_shard},
    {"cast spy", [](const Value& file) { return has(&file, "cast") && has(&file, "device"); },
     check_cast_spy},
};

/// Adds what the comparisons in tests/support say.
void add(const tests::ExpectationResult& result, Tally& tally) {
    tally.agree(static_cast<std::int64_t>(result.agreeing));
    for (const std::string& difference : result.differing) {
        tally.differ(difference);
    }
    for (const std::string& why : result.not_supported) {
        tally.unsupported(why);
    }
}

void check_json(const std::string& content, Tally& tally) {
    const Value file = parse_json(content);
    if (has(&file, "worlds") && has(&file, "loads")) {
        tally.set_kind("planner");
        add(tests::check_planner(content), tally);
        return;
    }
    const auto kind =
        std::find_if(std::begin(kinds), std::end(kinds), [&](const Kind& k) { return k.is(file); });
    if (kind == std::end(kinds)) {
        tally.unsupported("no kind of oracle file that is compared here");
        return;
    }
    tally.set_kind(kind->name);
    kind->check(file, tally);
}

/// What `check` adds for the file at `path`. A broken or an empty file is never agreement.
template <class Check>
Tally tally_of(const std::string& path, Check check) {
    Tally tally(path, "unknown kind");
    try {
        check(tally);
        if (tally.rows() == 0) {
            tally.differ("the file has no row");
        }
    } catch (const std::exception& error) {
        tally.differ(std::string("broken: ") + error.what());
    }
    return tally;
}

std::string without_slash(std::string path) {
    while (path.size() > 1 && path.ends_with('/')) {
        path.pop_back();
    }
    return path;
}

class Walk {
  public:
    explicit Walk(harness::Storage& storage) : storage_(storage) {}

    std::vector<Tally> check(const std::string& path) {
        if (!is_directory(storage_, path)) {
            check_file(path);
        } else if (storage_.exists(path + "/.metadata")) {
            check_checkpoint_at(path);
        } else {
            check_directory(path);
        }
        return std::move(tallies_);
    }

  private:
    void check_directory(const std::string& path) {
        for (const harness::DirectoryEntry& entry : storage_.list(path)) {
            const std::string child = path + "/" + entry.name;
            if (entry.is_directory && storage_.exists(child + "/.metadata")) {
                check_checkpoint_at(child);
            } else if (entry.is_directory) {
                check_directory(child);
            } else if (entry.name.ends_with(".json") && !belongs_to_checkpoint(child)) {
                check_file(child);
            }
        }
    }

    /// The directory that `path` describes, if it is an expected file.
    std::string checkpoint_of(const std::string& path) {
        constexpr std::string_view beside = ".expected.json";
        constexpr std::string_view inside = "expected.json";
        std::string directory;
        if (path.ends_with(beside)) {
            directory = path.substr(0, path.size() - beside.size());
        } else if (path == inside || path.ends_with("/expected.json")) {
            directory = path.substr(0, path.size() - inside.size()) + "ckpt";
        }
        return !directory.empty() && storage_.exists(directory + "/.metadata") ? directory : "";
    }

    bool belongs_to_checkpoint(const std::string& path) { return !checkpoint_of(path).empty(); }

    void check_file(const std::string& path) {
        const std::string directory = checkpoint_of(path);
        if (!directory.empty()) {
            compare(directory, path);
            return;
        }
        const std::string content = read_text(storage_, path);
        tallies_.push_back(tally_of(path, [&](Tally& tally) { check_json(content, tally); }));
    }

    void check_checkpoint_at(const std::string& path) {
        const std::string beside = path + ".expected.json";
        const std::string above = path + "/../expected.json";
        const std::string expected = storage_.exists(beside)  ? beside
                                     : storage_.exists(above) ? above
                                                              : "";
        if (expected.empty()) {
            tallies_.emplace_back(path, "checkpoint");
            tallies_.back().unsupported("no expected file beside it");
        } else {
            compare(path, expected);
        }
    }

    void compare(const std::string& directory, const std::string& expected) {
        tallies_.push_back(tally_of(directory, [&](Tally& tally) {
            tally.set_kind("checkpoint");
            add(tests::check_checkpoint(storage_, directory, expected), tally);
        }));
    }

    harness::Storage& storage_;
    std::vector<Tally> tallies_;
};

}  // namespace

std::vector<Tally> check_path(harness::Storage& storage, const std::string& path) {
    return Walk(storage).check(without_slash(path));
}

}  // namespace swaplab::oracle
