#include "gemm/tuning_cache.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/os/file_lock.h"
#include "base/os/files.h"
#include "base/os/whole_file.h"
#include "gemm/gemm_library.h"

namespace st {
namespace {

constexpr std::string_view kHead = "scaletrain-tuning ", kFirstLine = "scaletrain-tuning 2";
constexpr int64_t kMostBytes = int64_t{16} << 20;
constexpr double kPatience = 2;  // seconds to wait for the lock, which a writer holds for milliseconds
constexpr std::string_view kOwn = "own";
constexpr size_t kSizes = std::tuple_size_v<TileSizes>, kRates = 1 + kSizes, kWords = kRates + 3;

template <class Number>
bool reads(std::string_view word, Number& number, int base) {
  std::from_chars_result read{};
  if constexpr (std::is_integral_v<Number>)
    read = std::from_chars(word.data(), word.data() + word.size(), number, base);
  else
    read = std::from_chars(word.data(), word.data() + word.size(), number);  // not strtod, which obeys the host's locale
  return read.ec == std::errc{} && read.ptr == word.data() + word.size();
}

uint32_t crc_of(std::string_view body) { return crc32c(std::as_bytes(std::span(body))); }

std::string line_of(const std::string& key, const TunedSchedule& tuned) {
  std::string line = key;
  for (const int64_t size : sizes_of(tuned.schedule)) line += text(" ", size);
  return line + text(" ", tuned.rate, " ", tuned.standard_rate, " ", tuned.library.empty() ? kOwn : std::string_view(tuned.library), "\n");
}

bool read_line(std::string_view line, std::string& key, TunedSchedule& tuned) {
  const std::vector<std::string> words = words_of(line);
  if (words.size() != kWords) return false;
  TileSizes sizes{};
  for (size_t i = 0; i < kSizes; ++i)
    if (!reads(words[i + 1], sizes[i], 10)) return false;
  const auto schedule = schedule_of(sizes);
  const auto is_rate = [](double rate) { return std::isfinite(rate) && rate > 0; };
  if (!schedule || !reads(words[kRates], tuned.rate, 10) || !reads(words[kRates + 1], tuned.standard_rate, 10) || !is_rate(tuned.rate) ||
      !is_rate(tuned.standard_rate))
    return false;
  key = words[0];
  tuned.schedule = *schedule;
  tuned.library = words[kRates + 2] == kOwn ? std::string() : words[kRates + 2];
  return true;
}

/// "" if all entries were read, else what is wrong with the file.
std::string parse(std::string_view file, std::map<std::string, TunedSchedule>& entries) {
  const size_t first_end = file.find('\n'), last = file.substr(0, file.empty() ? 0 : file.size() - 1).rfind('\n');
  if (first_end == std::string_view::npos || last == std::string_view::npos || file.back() != '\n') return "it is truncated";
  if (file.substr(0, first_end) != kFirstLine)
    return text("it is of another version, \"", file.substr(0, std::min<size_t>(first_end, 40)), "\"");
  const std::string_view body = file.substr(first_end + 1, last - first_end);
  const std::vector<std::string> end = words_of(file.substr(last + 1));
  const std::vector<std::string_view> lines = lines_of(body);
  int64_t count = 0;
  uint32_t crc = 0;
  if (end.size() != 3 || end[0] != "end" || !reads(end[1], count, 10) || !reads(end[2], crc, 16)) return "it is truncated";
  if (count != static_cast<int64_t>(lines.size()) || crc != crc_of(body)) return "it is damaged";
  for (const std::string_view line : lines) {
    std::string key;
    TunedSchedule tuned;
    if (!read_line(line, key, tuned)) return text("it is damaged in the line \"", line.substr(0, 60), "\"");
    entries[key] = tuned;
  }
  return "";
}

std::string as_text(const std::map<std::string, TunedSchedule>& entries) {
  std::string body;
  for (const auto& [key, tuned] : entries) body += line_of(key, tuned);
  std::array<char, 8> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), crc_of(body), 16).ptr;
  return text(kFirstLine, "\n", body, "end ", entries.size(), " ",
              std::string_view(digits.data(), static_cast<size_t>(end - digits.data())), "\n");
}

}  // namespace

std::string tuning_key(const os::CpuIdentity& cpu, std::string_view kernel_class, const GemmProblem& p, const TileSchedule& wish,
                       bool order_is_wished, int threads, const GemmContest& contest) {
  const auto strides = [](char name, const MatrixStrides& at, int64_t batch, DType type) {
    return text(name, name_of(type), ",", at.row, ",", at.column, ",", batch, "/");
  };
  std::string key = text(cpu.vendor, "-", cpu.family, "-", cpu.model, "-", cpu.l1_bytes, "-", cpu.l2_bytes, "-", cpu.l3_bytes,
                         "/" ST_LIBRARY_VERSION "/", kernel_class, "/t", threads, "/", p.m, "x", p.n, "x", p.k, "/b", p.batch, "/",
                         strides('a', p.a, p.a_batch, p.a_type), strides('b', p.b, p.b_batch, p.b_type),
                         strides('c', p.c, p.c_batch, p.c_type), p.beta != 0 ? "beta" : "plain", p.bias ? "+bias" : "");
  if (!(wish == TileSchedule{}) || order_is_wished) {
    key += order_is_wished ? "/wish!" : "/wish";
    for (const int64_t size : sizes_of(wish)) key += text(",", size);
  }
  if (!contest.libraries.empty()) key += contest.tiles ? "/tiles" : "/default-tiles";
  for (const GemmLibrary* library : contest.libraries) key += text(",", library->identity());
  std::ranges::replace(key, ' ', '_');  // a vendor's name may contain spaces, which separate the words of a line
  return key;
}

std::optional<TunedSchedule> TuningCache::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  if (!is_read_) read(entries_, true);
  is_read_ = true;
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  return found->second;
}

void TuningCache::keep(const std::string& key, const TunedSchedule& tuned) {
  const std::lock_guard lock(mutex_);
  entries_[key] = tuned;
  if (path_.empty()) return;
  try {
    if (const size_t end = path_.rfind('/'); end != std::string::npos && end > 0) os::make_folders(path_.substr(0, end));
    const os::FileLock others(path_ + ".lock", kPatience);
    Entries all;
    if (read(all, true) == State::foreign) return;
    for (const auto& [known, entry] : entries_) all[known] = entry;
    const std::string whole = as_text(all);
    os::write_file_atomically(path_, [&](const auto& write) { write(std::as_bytes(std::span(std::string_view(whole)))); });
  } catch (const Error& error) {
    if (!std::exchange(is_reported_, true)) log_.warning("tuning", "measured schedules are not saved: ", error.message());
  }
}

TuningCache::State TuningCache::read(Entries& into, bool report) {
  const auto leave = [&](State state, const std::string& why) {
    if (report && !std::exchange(is_reported_, true)) log_.warning("tuning", "the cache ", path_, " is not used: ", why);
    return state;
  };
  if (path_.empty()) return State::none;
  try {
    const std::string file = os::read_file(path_, kMostBytes);
    const bool ours = std::string_view(file).substr(0, kHead.size()) == kHead.substr(0, file.size());  // or the beginning of ours
    if (!ours) return leave(State::foreign, "it is another kind of file and is left unchanged");
    Entries entries;
    if (const std::string wrong = parse(file, entries); !wrong.empty()) return leave(State::damaged, wrong + "; it will be replaced");
    into.merge(entries);
    return State::fine;
  } catch (const Error& error) {
    if (error.code() == Code::not_found) return State::none;
    return leave(State::foreign, error.message());
  }
}

std::string default_tuning_cache() {
  const auto named = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (std::getenv("SCALETRAIN_TUNING_CACHE") != nullptr) {
    std::string path = named("SCALETRAIN_TUNING_CACHE");
    return path == "none" ? std::string() : path;
  }
  const std::string cache = named("XDG_CACHE_HOME"), home = named("HOME");
  if (cache.starts_with('/')) return cache + "/scaletrain/gemm-tuning.txt";
  return home.starts_with('/') ? home + "/.cache/scaletrain/gemm-tuning.txt" : std::string();
}

}  // namespace st
