#include "saved_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "seconds_now.h"

namespace cli {
namespace {

constexpr int64_t kSmallTensor = 1 << 18, kLargeTensor = 1 << 22;  // elements

void write_all(int file, const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t done = ::write(file, bytes, std::min<size_t>(count, 8 << 20));
    if (done <= 0) throw Failure(kFailed, std::string("bench: write: ") + std::strerror(errno));
    bytes += done;
    count -= static_cast<size_t>(done);
  }
}

}  // namespace

SavedState::SavedState(const Context& context, int64_t bytes, const std::filesystem::path& folder)
    : context_(context), bytes_(bytes), folder_(folder), values_(static_cast<size_t>(bytes / 4)), copy_(values_.size()) {
  std::mt19937 random(7);
  for (float& value : values_) value = static_cast<float>(random()) * 0x1p-32F - 0.5F;
  for (int64_t left = bytes / 4; left > 0;) {
    const int64_t some = std::min(left, names_.size() % 3 == 0 ? kLargeTensor : kSmallTensor);
    names_.push_back("tensor." + std::to_string(names_.size()));
    elements_.push_back(some);
    left -= some;
  }
  checkpoint_ = manager(folder_ / "run", 0);
}

double SavedState::copy() {
  const double start = seconds_now();
  std::memcpy(copy_.data(), values_.data(), values_.size() * 4);
  return seconds_now() - start;
}

double SavedState::block() {
  const std::vector<st_named_view> all = views(values_);
  st_pending* pending = nullptr;
  const double start = seconds_now();
  cli::run(st_checkpoint_save(checkpoint_.get(), ++step_, std::ssize(all), all.data(), nullptr, &pending));
  const double blocked = seconds_now() - start;
  const Pending held(pending);
  cli::run(st_pending_wait(pending, -1));
  return blocked;
}

double SavedState::save() {
  const std::vector<st_named_view> all = views(values_);
  const double start = seconds_now();
  cli::run(st_checkpoint_save(checkpoint_.get(), ++step_, std::ssize(all), all.data(), nullptr, nullptr));
  return seconds_now() - start;
}

double SavedState::write_plain() const {
  const std::string path = folder_ / "plain";
  const double start = seconds_now();
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) throw Failure(kFailed, "bench: cannot make " + path);
  write_all(file, reinterpret_cast<const char*>(values_.data()), values_.size() * 4);
  const bool is_on_disk = fsync(file) == 0;
  close(file);
  const double seconds = seconds_now() - start;
  unlink(path.c_str());
  if (!is_on_disk) throw Failure(kFailed, "bench: fsync of " + path + ": " + std::strerror(errno));
  return seconds;
}

double SavedState::load(bool overwrite) {
  std::ranges::fill(copy_, 0.0F);
  const std::vector<st_named_view> all = views(copy_);
  st_read_options options;
  ask(st_read_options_init(&options, sizeof options));
  options.overwrite = overwrite ? 1 : 0;
  const double start = seconds_now();
  cli::run(st_checkpoint_load(checkpoint_.get(), nullptr, std::ssize(all), all.data(), &options, nullptr));
  const double seconds = seconds_now() - start;
  if (std::memcmp(copy_.data(), values_.data(), values_.size() * 4) != 0)
    throw Failure(kFailed, "bench: the loaded state differs from the saved one");
  return seconds;
}

double SavedState::read_files() const {
  std::vector<char> buffer(256 << 10);  // the size that coreutils 9 uses
  double seconds = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "run")) {
    if (!entry.is_regular_file()) continue;
    const double start = seconds_now();
    const int file = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) throw Failure(kFailed, "bench: cannot read " + entry.path().string());
    ssize_t got = 0;
    while ((got = ::read(file, buffer.data(), buffer.size())) > 0) {
    }
    close(file);
    seconds += seconds_now() - start;
    if (got < 0) throw Failure(kFailed, "bench: cannot read " + entry.path().string());
  }
  return seconds;
}

Pending SavedState::flush(double bytes_per_second) {
  if (!slow_) slow_ = manager(folder_ / "slow", bytes_per_second);
  const std::vector<st_named_view> all = views(values_);
  st_pending* pending = nullptr;
  cli::run(st_checkpoint_save(slow_.get(), ++step_, std::ssize(all), all.data(), nullptr, &pending));
  return Pending(pending);
}

std::vector<st_named_view> SavedState::views(std::vector<float>& of) const {
  std::vector<st_named_view> all;
  float* at = of.data();
  for (size_t i = 0; i < names_.size(); ++i) {
    all.push_back({names_[i].c_str(), {ST_F32, 1, &elements_[i], nullptr, at, elements_[i] * 4, 0, 0}});
    at += elements_[i];
  }
  return all;
}

Checkpoint SavedState::manager(const std::filesystem::path& folder, double bytes_per_second) const {
  st_checkpoint_options options;
  ask(st_checkpoint_options_init(&options, sizeof options));
  options.keep_last = 1;
  options.bytes_per_second = bytes_per_second;
  return make<Checkpoint>(st_checkpoint_create, context_.get(), folder.c_str(), &options);
}

}  // namespace cli
