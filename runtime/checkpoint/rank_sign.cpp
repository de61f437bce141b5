#include "checkpoint/rank_sign.h"

#include <chrono>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "base/json.h"
#include "base/os/files.h"
#include "base/os/whole_file.h"
#include "base/text.h"
#include "checkpoint/guarded_line.h"

namespace st {
namespace {

constexpr std::chrono::milliseconds kBeatEvery{50};
constexpr size_t kSignBytes = 4096;

/// nullopt: a live rank holds it, or there is no such file.
std::optional<os::FileHold> hold_of(const std::string& sign) {
  try {
    return os::FileHold::take(sign, os::FileHold::Kind::exclusive);
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
    return std::nullopt;
  }
}

}  // namespace

RankSign::RankSign(std::string path) : path_(std::move(path)) {
  constexpr int kTries = 100;
  constexpr std::chrono::milliseconds kHeldByAnother{1};
  for (int i = 0; !hold_; ++i) {  // until it is locked, rank 0 may remove it as a leftover
    require(i < kTries, Code::io, "checkpoint: ", path_, " could not be locked in ", kTries,
            " attempts; check that no other job saves there");
    os::OutputFile(path_, os::OutputFile::Open::shared).close();
    if (auto hold = hold_of(path_))
      hold_.emplace(std::move(*hold));
    else
      std::this_thread::sleep_for(kHeldByAnother);
  }
  beat();
  heart_.emplace([this] { beat_on(); });
}

/// Writes one guarded line, padded so that no later one needs room on the disk. Closes the file each time: a network file system shows the
/// write to other machines only then.
void RankSign::beat() {
  const std::lock_guard lock(mutex_);
  if (is_over_) return;
  std::string line = guard_line(JsonLine(said_).add("beats", ++beats_).add("progress", progress_.load()).text());
  line.resize(kSignBytes, ' ');
  os::OutputFile sign(path_, os::OutputFile::Open::shared);
  sign.write_at(0, std::as_bytes(std::span(line)));
  sign.close();
}

void RankSign::say(const JsonLine& said) {
  {
    const std::lock_guard lock(mutex_);
    said_ = said;
  }
  beat();
}

void RankSign::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
}

/// Runs on its own thread, so that this rank is not silent while it waits, even for its disk.
void RankSign::beat_on() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kBeatEvery, [&] { return is_over_; })) {
    lock.unlock();
    try {
      beat();
    } catch (const std::exception&) {  // the next beat may succeed; if none does, the others find this rank silent
    }
    lock.lock();
  }
}

SignContent read_sign(const std::string& path, int32_t rank, const std::string& name) {
  SignContent sign;
  sign.is_held = !hold_of(path);  // first: a rank that holds it no longer has said all
  try {
    std::string line = os::read_file(path, kSignBytes);
    line.erase(line.find('\n') + 1);
    check_guarded_line(line, path);
    const Json said = parse_json(line, path);
    const auto whole = [&said](std::string_view key) {
      const Json* const value = said.find(key);
      return value != nullptr && value->is(Json::Kind::whole) ? value->whole() : -1;
    };
    const auto words = [&said](std::string_view key) {
      const Json* const value = said.find(key);
      return value != nullptr && value->is(Json::Kind::text) ? value->text() : std::string();
    };
    sign.beats = whole("beats");
    sign.progress = whole("progress");
    sign.checkpoint = words("checkpoint");
    sign.file_bytes = whole("file_bytes");
    sign.is_written = whole("written") == 1;
    if (const int64_t code = whole("code"); code > 0) {
      const auto named = static_cast<int32_t>(whole("rank"));  // -1: none
      const std::string by = named < 0 ? text("checkpoint: ", name, ": ") : "";
      sign.failure.emplace(static_cast<Code>(code), by + words("why"));
      sign.failure->place.rank = named < 0 ? rank : named;
    }
  } catch (const Error& error) {
    sign.is_gone = error.code() == Code::not_found;
    if (!sign.is_gone && error.code() != Code::corrupt) throw;
    sign.is_held = sign.is_held && !sign.is_gone;
  }
  return sign;
}

void remove_sign_left_at(const std::string& path) {
  if (const auto hold = hold_of(path)) os::remove_file(path);
}

}  // namespace st
