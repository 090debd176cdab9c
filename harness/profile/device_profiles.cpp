#include "profile/device_profiles.hpp"

#include "files/whole_file.hpp"
#include "profile/built_in.hpp"

#include "swaplab/sim/error.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

namespace swaplab::harness {
namespace {

using Json = nlohmann::ordered_json;
using sim::DeviceProfile;

constexpr std::uint64_t file_bytes_max = std::uint64_t{1} << 20U;

struct Figure {
    std::string_view name;
    double DeviceProfile::*value;
    bool may_be_zero = false;
    bool may_be_null = false;  ///< no limit
};

constexpr Figure figures[] = {
    {"copy_setup_seconds", &DeviceProfile::copy_setup_seconds, true},
    {"launch_seconds", &DeviceProfile::launch_seconds, true},
    {"upload_bytes_per_second", &DeviceProfile::upload_bytes_per_second},
    {"download_bytes_per_second", &DeviceProfile::download_bytes_per_second},
    {"upload_beside_download_bytes_per_second",
     &DeviceProfile::upload_beside_download_bytes_per_second},
    {"download_beside_upload_bytes_per_second",
     &DeviceProfile::download_beside_upload_bytes_per_second},
    {"kernel_bytes_per_second", &DeviceProfile::kernel_bytes_per_second},
    {"host_memory_bytes_per_second", &DeviceProfile::host_memory_bytes_per_second, false, true},
};

const Figure* figure_named(std::string_view name) {
    const auto* found = std::find_if(std::begin(figures), std::end(figures),
                                     [&](const Figure& figure) { return figure.name == name; });
    return found == std::end(figures) ? nullptr : found;
}

std::string shown(const Json& json) {
    constexpr std::size_t most = 60;
    const std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
    return text.size() <= most ? text : text.substr(0, most) + "...";
}

class Reader {
  public:
    explicit Reader(const std::string& file) : file_(file) {}

    SourcedProfile read(std::string_view text) const {
        const Json json = parse(text);
        for (const auto& [key, value] : json.items()) {
            if (key != "name" && key != "sources" && figure_named(key) == nullptr &&
                !SWAPLAB_MUTANT("profile.unknown_field")) {
                refuse(key,
                       fmt::format("one of name, {}, sources", fmt::join(figure_names(), ", ")),
                       "a field that profiles do not have");
            }
        }
        SourcedProfile out;
        out.profile.name = text_of("name", field(json, "name"));
        for (const Figure& figure : figures) {
            out.profile.*figure.value = number_of(figure, field(json, std::string(figure.name)));
        }
        if (json.contains("sources")) {
            out.sources = sources_of(json["sources"]);
        }
        return out;
    }

  private:
    [[nodiscard]] Json parse(std::string_view text) const {
        Json json;
        try {
            json = Json::parse(text);
        } catch (const Json::parse_error& error) {
            refuse("", "JSON", fmt::format("text that is none from byte {} on", error.byte));
        } catch (const Json::exception&) {
            refuse("", "JSON", "a number that no double holds");
        }
        if (!json.is_object()) {
            refuse("", "a JSON object", shown(json));
        }
        return json;
    }
    [[nodiscard]] const Json& field(const Json& json, const std::string& name) const {
        if (!json.contains(name)) {
            refuse(name, "a value", "nothing");
        }
        return json[name];
    }
    [[nodiscard]] std::string text_of(const std::string& name, const Json& value) const {
        if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
            refuse(name, "a text", shown(value));
        }
        return value.get<std::string>();
    }
    [[nodiscard]] double number_of(const Figure& figure, const Json& value) const {
        if (figure.may_be_null && value.is_null()) {
            return std::numeric_limits<double>::infinity();
        }
        const double number = value.is_number() ? value.get<double>() : std::nan("");
        const bool good = number > 0 || (figure.may_be_zero && number == 0);
        if (!(good && std::isfinite(number)) && !SWAPLAB_MUTANT("profile.any_number")) {
            refuse(std::string(figure.name),
                   fmt::format("a number {}{}", figure.may_be_zero ? "from 0 on" : "above 0",
                               figure.may_be_null ? ", or null: no limit" : ""),
                   shown(value));
        }
        return number;
    }
    [[nodiscard]] std::map<std::string, std::string> sources_of(const Json& json) const {
        if (!json.is_object()) {
            refuse("sources", "an object", shown(json));
        }
        std::map<std::string, std::string> sources;
        for (const auto& [key, value] : json.items()) {
            if (figure_named(key) == nullptr) {
                refuse("sources." + key, "the name of a figure", "no such figure");
            }
            sources[key] = text_of("sources." + key, value);
        }
        return sources;
    }
    [[noreturn]] void refuse(const std::string& field, const std::string& expected,
                             const std::string& found) const {
        throw sim::ArgumentError(
            fmt::format("{} is no device profile: {}expected {}, found {}; docs/simulator.md "
                        "lists the fields",
                        file_, field.empty() ? "" : field + ": ", expected, found),
            {{"operation", "read device profile"},
             {"file", file_},
             {"field", field},
             {"expected", expected},
             {"found", found}});
    }

    const std::string& file_;
};

}  // namespace

std::vector<std::string> figure_names() {
    std::vector<std::string> names;
    std::transform(std::begin(figures), std::end(figures), std::back_inserter(names),
                   [](const Figure& figure) { return std::string(figure.name); });
    return names;
}

SourcedProfile read_profile(std::string_view json, const std::string& file) {
    return Reader(file).read(json);
}

std::string profile_json(const SourcedProfile& sourced) {
    Json json;
    json["name"] = sourced.profile.name;
    for (const Figure& figure : figures) {
        const double value = sourced.profile.*figure.value;
        json[std::string(figure.name)] = std::isinf(value) ? Json() : Json(value);
    }
    json["sources"] = Json::object();
    for (const Figure& figure : figures) {
        const auto source = sourced.sources.find(std::string(figure.name));
        if (source != sourced.sources.end()) {
            json["sources"][source->first] = source->second;
        }
    }
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<std::string> profile_names() {
    std::vector<std::string> names;
    for (const BuiltInProfile& profile : built_in_profiles()) {
        names.emplace_back(profile.name);
    }
    return names;
}

SourcedProfile profile_named(const std::string& name) {
    for (const BuiltInProfile& profile : built_in_profiles()) {
        if (profile.name == name) {
            return read_profile(profile.json, name + ".json");
        }
    }
    const std::string known = fmt::format("{}", fmt::join(profile_names(), ", "));
    throw sim::ArgumentError(
        fmt::format("there is no device profile \"{}\"; there are: {}; a file has a '/' or '.' in "
                    "its path",
                    name, known),
        {{"operation", "find device profile"}, {"expected", known}, {"found", name}});
}

SourcedProfile find_profile(Storage& storage, const std::string& name_or_file) {
    if (name_or_file.find_first_of("/.") == std::string::npos) {
        return profile_named(name_or_file);
    }
    const auto bytes = read_whole(storage, name_or_file, file_bytes_max);
    return read_profile({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name_or_file);
}

}  // namespace swaplab::harness
