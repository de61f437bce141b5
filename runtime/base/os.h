// Calls to the operating system: the only place that knows which one it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace st::os {

/// Cores this process may use: its affinity mask, lowered by a cgroup quota (v1 and v2), at least 1.
int available_cores();
/// Memory of this machine that can still be had, bytes: MemAvailable, lowered by a cgroup limit.
int64_t available_memory();
/// All that there would be if nobody had any: the machine's, lowered by a cgroup's limit.
int64_t total_memory();
/// Resident memory of this process, bytes.
int64_t resident_memory();
double seconds();                         // monotonic
std::string reason_of(int error_number);  // "No such file or directory"
std::string host_name();
int64_t process_id();
/// This thread runs behind the process's others from here on: on a busy machine it gets a small share of a core, on an idle one all of it.
void give_way_to_other_threads();
/// Asks that the child of a fork finds whole pages of memory that is no file's zero, however it was forked. False where the system does
/// not.
bool clear_in_forked_child(std::span<std::byte> pages);

struct CpuIdentity {
  std::string vendor;  // "AuthenticAMD"
  std::string brand;   // "AMD EPYC ..."
  int family = 0, model = 0;
  bool avx2_fma = false, avx512 = false /* F, BW, DQ, VL */, avx512_bf16 = false, amx_bf16 = false;
  int64_t l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;  // data caches as the OS reports them; 0: unknown
};
const CpuIdentity& cpu();
/// Asks the system to let this process use the CPU's tile registers (AMX), the first time; whether it does. Linux then refuses signal
/// stacks that are too small for them, and refuses us where a thread has one: so only who is about to use tiles asks.
bool may_use_tiles();
/// Cycles of this core a second: by the time of a chain of additions, each of which takes one. Measured once, in some 20 us.
double clock_rate();

enum class PathKind : int32_t { none, file, folder, other };
/// What stands at a path, links followed. Throws io with path and reason when that cannot be told.
PathKind kind_of(const std::string& path);

/// The regular files below a folder, named relative to it and sorted: links to files too, folders behind links not. What `takes` refuses is
/// neither listed nor entered. Throws io with path and reason.
std::vector<std::string> files_below(const std::string& folder, const std::function<bool(std::string_view name, bool is_folder)>& takes);

/// What a short file of the system's says (/proc, /sys); empty when it cannot be read.
std::string short_file(const std::string& path);

/// A whole file of at most `most` bytes, read: for files that someone else may be writing. Throws io with path and reason (not_found when
/// it is not there).
std::string read_file(const std::string& path, int64_t most);

/// Makes a folder and those that it stands in; fine where they are there. Throws io with path and reason.
void make_folders(const std::string& path);

/// One process at a time, by an advisory lock on a file that stays: `path` is made if need be. Waits at most `patience` seconds, and throws
/// io with path and reason where the file cannot be had or is held for longer.
class FileLock {
 public:
  FileLock(const std::string& path, double patience);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

/// A whole file mapped read-only. Throws io with path and reason (not_found when it is not there).
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  MappedFile(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

/// Memory straight from the OS, page-aligned and zero: anonymous, or a file's. Throws out_of_memory with the size asked for and what there
/// is.
class Pages {
 public:
  Pages() = default;
  explicit Pages(int64_t bytes);
  /// Of a file without a name in `folder`, whose room on the disk is reserved here: gone with the process, however that ends. The system
  /// writes to it what memory has no room for. Throws io with folder, need and what is free there.
  Pages(int64_t bytes, const std::string& folder);
  /// Such ones from here on, at the same address with the same bytes. Nobody writes them meanwhile; what throws has changed nothing.
  void move_to_file(const std::string& folder);
  ~Pages();
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;
  Pages(const Pages&) = delete;
  std::byte* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  int64_t size_ = 0;
};

/// Opens the shared library that this code is in once more, so that it stays loaded when its host closes it. Null: it is in none, or the
/// loader does not find it again.
void* open_own_library() noexcept;
/// Gives that back, and 0. Where it was the last reference the calling code is gone: the caller, all the way out of the library, must be
/// code that ends in a jump here, which needs kMakesTailCalls.
int close_own_library(void* library);
/// Whether the file that reads this is compiled so that a call at a function's end becomes a jump.
#ifdef __OPTIMIZE__
constexpr bool kMakesTailCalls = true;
#else
constexpr bool kMakesTailCalls = false;
#endif

/// A shared library of others, opened while we run. It is never closed: what has started threads cannot be.
class LoadedLibrary {
 public:
  /// `name`: a path, or a name that the loader looks for. Runs the library's initialisers. Throws unavailable with the loader's reason.
  explicit LoadedLibrary(const std::string& name);

  const std::string& name() const { return name_; }
  /// Somebody else in this process has opened it before.
  bool was_there() const { return was_there_; }

  /// Null: it has no such function, nor has a library that it needs. `Function` is a pointer to a function.
  template <class Function>
  Function find(const char* name) const {
    return reinterpret_cast<Function>(symbol(name));
  }
  /// Throws unavailable where it has no such function.
  template <class Function>
  Function need(const char* name) const {
    return reinterpret_cast<Function>(needed(name));
  }

 private:
  void* symbol(const char* name) const;
  void* needed(const char* name) const;

  std::string name_;
  void* handle_;
  bool was_there_;
};

}  // namespace st::os
