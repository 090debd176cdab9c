#include "checkpoint/paths.hpp"

namespace swaplab::harness {

std::string normal_path(std::string_view path) {
    const bool absolute = !path.empty() && path.front() == '/';
    std::string result;
    std::size_t begin = 0;
    while (begin <= path.size()) {
        const std::size_t end = std::min(path.find('/', begin), path.size());
        const std::string_view part = path.substr(begin, end - begin);
        if (!part.empty() && part != ".") {
            if (!result.empty()) {
                result += '/';
            }
            result += part;
        }
        begin = end + 1;
    }
    if (absolute) {
        return "/" + result;
    }
    return result.empty() ? "." : result;
}

std::string join_path(std::string_view directory, std::string_view name) {
    if (directory.empty() || directory == ".") {
        return std::string(name);
    }
    std::string result(directory);
    if (result.back() != '/') {
        result += '/';
    }
    return result.append(name);
}

std::string parent_of(const std::string& path) {
    const std::string normal = normal_path(path);
    const std::size_t slash = normal.rfind('/');
    if (slash == std::string::npos) {
        return ".";
    }
    return slash == 0 ? "/" : normal.substr(0, slash);
}

std::string base_name_of(const std::string& path) {
    const std::string normal = normal_path(path);
    return normal.substr(normal.rfind('/') + 1);
}

}  // namespace swaplab::harness
