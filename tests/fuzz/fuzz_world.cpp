#include "fuzz_world.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "call_tally.h"

namespace st::fuzz {

namespace {

/// Elements from the first to the last that the strides reach.
int64_t span_of(int64_t rows, int64_t columns, const int64_t* strides) {
  return rows == 0 || columns == 0 ? 0 : (rows - 1) * strides[0] + (columns - 1) * strides[1] + 1;
}

}  // namespace

void finding(const char* what, const std::string& detail) {
  std::fprintf(stderr, "FINDING %s: %s\n", what, detail.c_str());
  std::abort();
}

World::World(const uint8_t* input, size_t size) : bytes(input, size) { values = {0}; }

World::~World() {
  while (!tensors.live.empty()) destroy("st_tensor_destroy", tensors, st_tensor_destroy, bytes.pick(tensors.live));
  while (!pendings.live.empty()) destroy("st_pending_destroy", pendings, st_pending_destroy, bytes.pick(pendings.live));
  // Parents and children, in an order that the input chooses.
  for (int round = 0; round < 2; ++round) {
    const bool all = round == 1;
    each_shelf([&](auto& shelf, const char* call, auto destroyer) {
      while (!shelf.live.empty() && (all || bytes.next() % 2 == 0)) destroy(call, shelf, destroyer, bytes.pick(shelf.live));
    });
  }
  int64_t live = -1;
  if (st_live_handles(nullptr, &live) != ST_OK || live != 0) finding("st_live_handles", std::to_string(live) + " are left");
  // A trainer's last call may come from the callback that makes its rows, on the prefetching thread. That thread then ends the trainer and
  // releases the rows after the destroy here has returned.
  for (int milliseconds = 0; lent != released && milliseconds < 10000; ++milliseconds) usleep(1000);
  if (lent != released) finding("release", std::to_string(lent) + " lent, " + std::to_string(released) + " released");
}

void* World::foreign() {
  switch (bytes.next() % 4) {
    case 0:
      return contexts.live.empty() ? nullptr : static_cast<void*>(bytes.pick(contexts.live));
    case 1:
      return models.live.empty() ? nullptr : static_cast<void*>(bytes.pick(models.live));
    case 2:
      return trainers.live.empty() ? nullptr : static_cast<void*>(bytes.pick(trainers.live));
    default:
      return recipes.live.empty() ? nullptr : static_cast<void*>(bytes.pick(recipes.live));
  }
}

bool World::ok(const char* call, st_status status) {
  static const bool told = std::getenv("ST_FUZZ_TRACE") != nullptr;
  if (told) std::fprintf(stderr, "%s: %d %s\n", call, status, status == ST_OK ? "" : st_last_error());
  tally().count(call, status == ST_OK);
  if (status == ST_OK) return true;
  const char* message = st_last_error();
  tally().count("st_last_error", message != nullptr);
  if (status < ST_OK || status > ST_INTERNAL) finding(call, "status " + std::to_string(status));
  if (status == ST_INTERNAL) finding(call, std::string("ST_INTERNAL: ") + (message != nullptr ? message : "NULL"));
  if (message == nullptr || *message == '\0') finding(call, "status " + std::to_string(status) + " without a message");
  return false;
}

const char* World::name() {
  static const std::string kLong(5000, 'n');
  static const std::array<const char*, 20> kNames = {
      "x", "y",   "w",        "prediction",        "first.weight", "second.bias", "tokens", "targets", "logits", "metric.a",
      "",  "a.b", "\xff\xfe", "with \"quotes\"\n", "__metadata__", "../up",       "%s%n",   "host_op", nullptr,  kLong.c_str()};
  return bytes.pick(kNames);
}

int64_t World::number() {
  using Limits = std::numeric_limits<int64_t>;
  static constexpr std::array<int64_t, 20> kNumbers = {1,
                                                       0,
                                                       2,
                                                       3,
                                                       4,
                                                       8,
                                                       -1,
                                                       -2,
                                                       16,
                                                       64,
                                                       9,
                                                       255,
                                                       1 << 20,
                                                       int64_t{1} << 31,
                                                       int64_t{1} << 40,
                                                       Limits::max(),
                                                       Limits::min(),
                                                       Limits::max() - 1,
                                                       Limits::max() / 4,
                                                       -1000};
  return bytes.pick(kNumbers);
}

void* World::memory(size_t size) {
  memory_.push_back(std::make_unique<uint8_t[]>(size));  // of the exact size, so that an access past its end is detected
  return memory_.back().get();
}

const int64_t* World::dims(std::initializer_list<int64_t> wanted) {
  auto* made = static_cast<int64_t*>(memory(wanted.size() * sizeof(int64_t)));
  std::memcpy(made, wanted.begin(), wanted.size() * sizeof(int64_t));
  return made;
}

const int64_t* World::dims() {
  auto* made = static_cast<int64_t*>(memory(9 * sizeof(int64_t)));  // ranks up to 9 are tried
  for (int i = 0; i < 9; ++i) made[i] = bytes.rarely(4) ? number() : 1 + bytes.next() % 4;
  return made;
}

st_view World::view() {
  if (bytes.rarely(3)) {  // an input of the regression here
    static constexpr std::array<int64_t, 4> kRows = {1, 4, 8, 5};
    const int64_t rows = bytes.pick(kRows), columns = rows == 1 ? 4 : 1;
    return {ST_F32, 2, dims({rows, columns}), nullptr, memory(static_cast<size_t>(rows * columns * 4)), rows * columns * 4};
  }
  st_view made{};
  made.dtype = bytes.rarely() ? static_cast<st_dtype>(number()) : 1 + bytes.next() % 8;
  made.rank = bytes.rarely() ? static_cast<int32_t>(bytes.next()) % 12 - 2 : 1 + bytes.next() % 3;
  if (made.rank > 9) made.rank = 9;
  made.dims = bytes.rarely(16) ? nullptr : dims();
  made.strides = bytes.rarely(4) ? dims() : nullptr;
  const size_t room = size_t{4} << (bytes.next() % 8);
  made.data = bytes.rarely(16) ? nullptr : memory(room);
  made.bytes = bytes.rarely() ? number() : static_cast<int64_t>(room);
  if (made.bytes > static_cast<int64_t>(room)) made.bytes = static_cast<int64_t>(room);
  if (made.bytes == 1 || made.bytes == 9 || made.bytes == -1)  // hostile numbers, which serve as devices too
    (made.bytes == 1 ? made.reserved : made.device) = static_cast<int32_t>(made.bytes);
  return made;
}

st_view World::view_of(std::initializer_list<int64_t> shape) {
  int64_t elements = 1;
  for (const int64_t dim : shape) elements *= dim;
  void* zeros = memory(static_cast<size_t>(elements) * 4);
  std::memset(zeros, 0, static_cast<size_t>(elements) * 4);
  return {ST_F32, static_cast<int32_t>(shape.size()), dims(shape), nullptr, zeros, elements * 4};
}

const int64_t* World::batch_strides(int64_t rows, int64_t columns) {
  switch (bytes.next() % 4) {
    case 0:
      return dims({columns + 3, 1});  // rows of a wider table
    case 1:
      return dims({1, rows});  // column-major
    case 2:
      return dims({0, 1});  // one row for all
    default:
      return dims({2 * columns, 2});  // every second element
  }
}

std::vector<st_named_view> World::batch(bool tokens) {
  static constexpr std::array<int64_t, 10> kRows = {8, 8, 8, 4, 7, 5, 1, 3, 9, 0};  // a step here takes 8 or fewer, a forward 4
  const int64_t rows = bytes.pick(kRows), columns = tokens ? 4 : 1;
  std::vector<st_named_view> views;
  for (const char* name : {tokens ? "tokens" : "x", tokens ? "targets" : "y"}) {
    const int64_t* strides = bytes.rarely(3) ? batch_strides(rows, columns) : nullptr;
    const int64_t elements = strides == nullptr ? rows * columns : span_of(rows, columns, strides), bytes_here = elements * 4;
    auto* room = static_cast<uint8_t*>(memory(static_cast<size_t>(bytes_here)));
    const int32_t seed = bytes.next();
    for (int64_t i = 0; i < elements; ++i) {
      const int32_t token = seed == 7 && i == 3 ? -5 : (seed + static_cast<int32_t>(i) * 7) % 16;
      float number_here = static_cast<float>(token) * 0.1F;
      if (token < 0) number_here = std::numeric_limits<float>::quiet_NaN();
      std::memcpy(room + 4 * i, tokens ? static_cast<const void*>(&token) : &number_here, 4);
    }
    views.push_back({name, {tokens ? ST_I32 : ST_F32, 2, dims({rows, columns}), strides, room, bytes_here}});
  }
  if (!bytes.rarely(3)) return views;
  st_named_view& wrong = views[bytes.next() % 2];
  const Calls wrongs = {
      [&] { wrong.name = name(); },
      [&] { wrong.view = view(); },
      [&] { wrong.view.bytes -= 1; },
      [&] { views.pop_back(); },
      [&] { views.push_back(views.front()); },
      [&] { wrong.view.dims = dims(); },
  };
  bytes.choose(6, wrongs);
  return views;
}

std::vector<st_named_view> World::views(const char* first) {
  std::vector<st_named_view> made;
  for (int i = 0, n = bytes.next() % 3; i < n; ++i) made.push_back({i == 0 ? first : name(), view()});
  return made;
}

const std::string& World::folder() {
  struct Folder {
    std::filesystem::path path = std::filesystem::temp_directory_path() / ("scaletrain_fuzz_" + std::to_string(getpid()));
    std::string text = path.string();
    Folder() {
      std::filesystem::create_directories(path / "read");
      std::filesystem::create_directories(path / "write");
      std::string words;
      while (words.size() < 600) words += "the runtime trains a small model step by step.\n";
      std::ofstream(path / "read" / "text.txt", std::ios::binary) << words;
      std::ofstream(path / "read" / "short.txt", std::ios::binary) << "ab";
      std::ofstream(path / "write" / "broken.safetensors", std::ios::binary) << std::string("\x10\0\0\0\0\0\0\0{\"w\":{\"dtype\":1}", 24);
    }
    ~Folder() { std::filesystem::remove_all(path); }
  };
  static const Folder folder;
  return folder.text;
}

}  // namespace st::fuzz
