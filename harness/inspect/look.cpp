#include "inspect/look.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace swaplab::harness {
namespace {

constexpr const char* reset = "\x1b[0m";
// Marks of bold text, so that dressed() can tell its own escape sequences from those of a file.
constexpr char bold_begins = '\x01';
constexpr char bold_ends = '\x02';

struct Painted {
    std::string_view word;
    const char* color;
    bool kept;  ///< by Look::quiet: verdicts, and what was asked for by an option of its own
};

constexpr std::array painted{Painted{"finding", "\x1b[31m", true}, Painted{"ok", "\x1b[32m", false},
                             Painted{"note", "\x1b[33m", false},
                             Painted{"cannot tell", "\x1b[33m", true},
                             Painted{"sha256", "\x1b[36m", true}};

const Painted* first_word(std::string_view line) {
    const auto found = std::find_if(painted.begin(), painted.end(), [&](const Painted& one) {
        return line.starts_with(one.word) && line.substr(one.word.size()).starts_with("  ");
    });
    return found == painted.end() ? nullptr : &*found;
}

/// Keys and names come from files that anybody may have written: nothing in them steers a terminal.
/// A mark among them makes at most the rest of its line bold.
std::string harmless(std::string_view line, const Look& look) {
    std::string out;
    bool is_bold = false;
    for (const char c : line) {
        const bool control = static_cast<unsigned char>(c) < 0x20 || c == '\x7f';
        if (look.color && (c == bold_begins || c == bold_ends)) {
            is_bold = c == bold_begins;
            out += is_bold ? "\x1b[1m" : reset;
        } else {
            out += control && c != '\n' ? '?' : c;
        }
    }
    return is_bold ? out + reset : out;
}

}  // namespace

std::string bold(const std::string& text, const Look& look) {
    return look.color && !text.empty() ? bold_begins + text + bold_ends : text;
}

std::string fitted(const std::string& key, std::size_t room) {
    constexpr std::size_t least = 12;
    const std::size_t width = std::max(room, least);
    return key.size() <= width ? key : "..." + key.substr(key.size() - (width - 3));
}

std::string dressed(const std::string& text, const Look& look) {
    std::string out;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
        const std::string_view line = std::string_view(text).substr(begin, end - begin);
        const Painted* word = first_word(line);
        const bool shown = !look.quiet || (word != nullptr && word->kept);
        if (shown && word != nullptr && look.color) {
            out += word->color;
            out += word->word;
            out += reset;
            out += harmless(line.substr(word->word.size()), look);
        } else if (shown) {
            out += harmless(line, look);
        }
        begin = end;
    }
    return out;
}

}  // namespace swaplab::harness
