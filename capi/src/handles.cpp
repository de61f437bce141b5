#include "handles.h"

#include <bit>
#include <new>
#include <span>

#include "base/os/machine.h"
#include "guard.h"

namespace st::capi {

/// A slot. Never moved, and never freed while the library is loaded, since a signal handler may be reading it.
struct Entry {
  std::atomic<uint64_t> gate{0};       // the generation, and below it the flags kOpen, kInside, kRun
  std::atomic<Object*> live{nullptr};  // null: no handle; read by Pin
  std::atomic<int32_t> pins{0};
  std::shared_ptr<Object> object;  // object and next_free are guarded by the table's mutex
  uint32_t next_free = 0;          // slot + 1; 0: none
};

namespace {

// A gate's flags. While kInside is set, only the call inside may change the gate; while kRun is set, only the run's thread.
constexpr uint64_t kOpen = 1, kInside = 2, kRun = 4;  // kOpen: a handle exists

uint64_t open_gate(uint32_t generation) { return uint64_t{generation} << 32 | kOpen; }
uint32_t generation_of(const Entry& entry) { return static_cast<uint32_t>(entry.gate.load() >> 32); }

// The first chunk is part of the library's data; each further one doubles the table. So a library that is loaded and unloaded repeatedly,
// as plug-ins are, leaks nothing.
constexpr uint32_t kFirstChunk = 256, kChunks = 16;

struct Table {
  std::mutex mutex;
  std::array<Entry, kFirstChunk> first;
  std::array<std::atomic<Entry*>, kChunks> chunks{};  // further ones; chunk c holds kFirstChunk << c
  std::atomic<uint32_t> size{0};                      // slots ever used
  std::atomic<int64_t> live{0};
  int64_t objects = 0;  // that occupy a slot, with or without a handle
  std::atomic<int32_t> pins{0};
  uint32_t free = 0;  // slot + 1 of the first free one
};

// A handle's bits: generation (32), slot + 1 (24), kind + 1 (8). Never null, and never the address of anything.
constexpr uint64_t kKindBits = 8, kSlotBits = 24;

/// Never destroyed: a host's thread may still be in a call while the process exits.
struct Tables {
  union {
    std::array<Table, kKinds> of_kind;
  };
  constexpr Tables() : of_kind{} {}
  ~Tables() {}  // NOLINT(modernize-use-equals-default): a union with members has no default one
};

constinit Tables tables;
constinit std::atomic<int64_t> owner{0};  // the process that created the first handle

/// A page that is zero in a forked child, so that calls need not ask the system for the process id. It stays zero if the system cannot
/// clear pages.
struct alignas(4096) Witness {
  std::atomic<bool> is_owner{false};
};
constinit Witness witness;

Table& table(Kind kind) { return tables.of_kind[static_cast<size_t>(kind)]; }

struct Position {
  uint32_t chunk, index;  // chunk 0 is Table::first
};

Position position_of(uint32_t slot) {
  const auto chunk = static_cast<uint32_t>(std::bit_width(slot / kFirstChunk));
  return {chunk, chunk == 0 ? slot : slot - (kFirstChunk << (chunk - 1))};
}

/// Null if there is no such slot. Lock-free.
Entry* entry_at(Table& table, uint32_t slot) {
  if (slot >= table.size.load()) return nullptr;
  const Position at = position_of(slot);
  if (at.chunk == 0) return &table.first[at.index];
  Entry* chunk = table.chunks[at.chunk - 1].load();
  return chunk == nullptr ? nullptr : chunk + at.index;
}

void* pack(Kind kind, uint32_t slot, uint32_t generation) {
  const uint64_t bits =
      (uint64_t{generation} << (kKindBits + kSlotBits)) | (uint64_t{slot + 1} << kKindBits) | (static_cast<uint64_t>(kind) + 1);
  return reinterpret_cast<void*>(bits);
}

struct Bits {
  uint64_t kind;  // + 1
  uint32_t slot;  // + 1
  uint32_t generation;
};

Bits bits_of(const void* handle) {
  const auto bits = reinterpret_cast<uint64_t>(handle);
  return {bits & 0xFF, static_cast<uint32_t>((bits >> kKindBits) & 0xFFFFFF), static_cast<uint32_t>(bits >> (kKindBits + kSlotBits))};
}

/// A forked child has none of the parent's threads, and perhaps its locked mutexes: calls there must fail instead of blocking. A child of a
/// process that never had a handle is not restricted.
bool is_forked() {
  if (witness.is_owner.load(std::memory_order_relaxed)) return false;
  const int64_t first = owner.load();
  return first != 0 && first != os::process_id();
}

void check_process(Kind kind) {
  if (!is_forked()) return;
  fail(Code::wrong_state,
       text(name_of(kind), ": process ", os::process_id(), " was forked from ", owner.load(),
            ", which already had handles; start the process with spawn or exec, or fork before the first handle is created"));
}

[[noreturn]] void refuse(Kind kind, std::string_view why) {
  fail(Code::invalid_handle, text(name_of(kind), ": ", why, "; pass a handle that exists"));
}

/// The entry of a live handle; the caller holds the table's mutex.
Entry& entry_of(Table& table, Kind kind, const void* handle) {
  if (handle == nullptr) refuse(kind, "the handle is NULL");
  const Bits bits = bits_of(handle);
  if (bits.kind != static_cast<uint64_t>(kind) + 1) {
    const bool ours = bits.kind >= 1 && bits.kind <= kKinds;
    refuse(kind, ours ? text("this is a different handle (perhaps of kind ", name_of(static_cast<Kind>(bits.kind - 1)), ")")
                      : "this is not a handle of this library");
  }
  Entry* entry = bits.slot == 0 ? nullptr : entry_at(table, bits.slot - 1);
  if (entry == nullptr) refuse(kind, "this is not a handle of this library");
  if (generation_of(*entry) != bits.generation || !entry->object) refuse(kind, "the handle was destroyed");
  return *entry;
}

/// A slot without a handle; the caller holds the table's mutex.
uint32_t free_slot(Table& table, Kind kind) {
  if (table.free != 0) return table.free - 1;
  const uint32_t slot = table.size.load();
  require(slot < 0xFFFFFE && position_of(slot).chunk <= kChunks, Code::out_of_memory, name_of(kind), ": more than ", slot, " live handles");
  const Position at = position_of(slot);
  if (at.chunk > 0 && at.index == 0)
    table.chunks[at.chunk - 1].store(once_for_the_process([&] { return new Entry[size_t{kFirstChunk} << (at.chunk - 1)]; }));
  table.size.store(slot + 1);  // after its chunk, so that a Pin finds it
  table.free = slot + 1;
  return slot;
}

/// Runs when the library is unloaded. Tables that hold objects stay: threads may still be running when a process exits.
[[gnu::destructor]] void free_chunks() {
  for (Table& t : tables.of_kind) {
    const std::unique_lock lock(t.mutex, std::try_to_lock);
    if (!lock || t.objects != 0) continue;
    t.size.store(0);
    t.free = 0;
    for (auto& chunk : t.chunks) {
      Entry* entries = chunk.exchange(nullptr);
      if (t.pins.load() == 0) delete[] entries;
    }
  }
}

}  // namespace

Object::~Object() {
  Entry* entry = entry_.load();
  if (entry == nullptr) return;
  Table& t = table(kind_);
  const std::lock_guard lock(t.mutex);
  entry->next_free = t.free;
  t.free = slot_ + 1;
  --t.objects;
}

bool Object::enter() {
  Entry* entry = entry_.load();  // null: a trim of the context while this object is being created
  if (entry == nullptr) return false;
  uint64_t now = entry->gate.load();
  while ((now & kInside) == 0 && ((now & kRun) == 0 || runner_ == std::this_thread::get_id()))
    if (entry->gate.compare_exchange_weak(now, now | kInside)) return true;
  return false;
}

void Object::leave() {
  Entry& entry = *entry_.load(std::memory_order_relaxed);
  entry.gate.store(entry.gate.load(std::memory_order_relaxed) & ~kInside, std::memory_order_release);
}

bool Object::begin_run() {
  Entry& entry = *entry_.load();
  uint64_t now = entry.gate.load();
  while ((now & (kInside | kRun)) == 0) {
    if (!entry.gate.compare_exchange_weak(now, now | kInside | kRun)) continue;
    runner_ = std::this_thread::get_id();
    leave();
    return true;
  }
  return false;
}

void Object::end_run() {
  runner_ = std::thread::id();
  entry_.load()->gate.fetch_and(~kRun);
}

std::string_view name_of(Kind kind) {
  constexpr std::array<std::string_view, kKinds> kNames = {"context",       "graph",
                                                           "model",         "data",
                                                           "recipe",        "trainer",
                                                           "predictor",     "tensor",
                                                           "pending",       "gemm",
                                                           "packed",        "schedule",
                                                           "loss_scaler",   "optimizer",
                                                           "accumulator",   "checkpoint",
                                                           "communicator",  "distributed_sampler",
                                                           "data_parallel", "sharded_optimizer",
                                                           "pipeline",      "plan"};
  return kNames[static_cast<size_t>(kind)];
}

void* add(Kind kind, std::shared_ptr<Object> object) {
  if (int64_t nobody = 0; owner.load() == 0 && owner.compare_exchange_strong(nobody, os::process_id()))
    witness.is_owner = os::clear_in_forked_child(std::as_writable_bytes(std::span(&witness, 1)));
  check_process(kind);
  object->hold_.emplace();  // before the lock: the loader has a lock under which it runs the host's code, which may call us
  Table& t = table(kind);
  const std::lock_guard lock(t.mutex);
  const uint32_t slot = free_slot(t, kind);
  Entry& entry = *entry_at(t, slot);
  t.free = entry.next_free;
  entry.next_free = 0;
  const uint32_t generation = generation_of(entry) + 1;
  object->kind_ = kind;
  object->slot_ = slot;
  entry.object = std::move(object);
  // Set the new generation while the gate is closed: whoever sees the object then sees that generation, and is rejected until the gate
  // opens.
  entry.gate.store(open_gate(generation) ^ kOpen ^ kInside);
  entry.live.store(entry.object.get());
  entry.object->entry_.store(&entry);
  entry.gate.store(open_gate(generation));
  ++t.live;
  ++t.objects;
  return pack(kind, slot, generation);
}

std::shared_ptr<Object> look_up(Kind kind, const void* handle) {
  check_process(kind);
  Table& t = table(kind);
  const std::lock_guard lock(t.mutex);
  std::shared_ptr<Object> object = entry_of(t, kind, handle).object;
  Heap::serve(object->heap);
  return object;
}

Object* enter_at_once(Kind kind, const void* handle) noexcept {
  const Bits bits = bits_of(handle);
  // Entries of the first chunk exist as long as the library.
  if (bits.kind != static_cast<uint64_t>(kind) + 1 || bits.slot - 1 >= kFirstChunk || is_forked()) return nullptr;
  Entry& entry = table(kind).first[bits.slot - 1];
  uint64_t nobody_inside = open_gate(bits.generation);
  if (!entry.gate.compare_exchange_strong(nobody_inside, nobody_inside | kInside)) return nullptr;
  Object* object = entry.live.load(std::memory_order_relaxed);
  Heap::serve(object->heap);
  return object;
}

void remove(Kind kind, const void* handle) {
  if (handle == nullptr) return;
  check_process(kind);
  std::shared_ptr<Object> freed;  // destroyed after the lock is released: a destructor may be slow
  Table& t = table(kind);
  const std::lock_guard lock(t.mutex);
  Entry& entry = entry_of(t, kind, handle);
  uint64_t nobody_inside = open_gate(bits_of(handle).generation);
  require(entry.object->users.load() == 0 && entry.gate.compare_exchange_strong(nobody_inside, nobody_inside & ~kOpen), Code::busy,
          name_of(kind), ": a call on this handle is running; destroy it when the call has returned");
  entry.live.store(nullptr);
  while (entry.pins.load() != 0) std::this_thread::yield();  // a cancel, in its few instructions
  freed = std::move(entry.object);
  --t.live;
}

Parting destroyed(Kind kind, const void* handle, const char* call) noexcept {
  const OnTheWayOut way;
  return way.part(guard([&] { remove(kind, handle); }, call));
}

int64_t live(Kind kind) {
  check_process(kind);
  return table(kind).live.load();
}

// Either remove() sees the pin and waits, or the pin sees no live object: sequentially consistent, both stores precede both loads.
Pin::Pin(Kind kind, const void* handle) noexcept : kind_(kind) {
  Table& t = table(kind);
  t.pins.fetch_add(1);
  if (is_forked()) {
    code_ = Code::wrong_state;
    return;
  }
  const Bits bits = bits_of(handle);
  if (bits.kind != static_cast<uint64_t>(kind) + 1 || bits.slot == 0) return;
  entry_ = entry_at(t, bits.slot - 1);
  if (entry_ == nullptr) return;
  entry_->pins.fetch_add(1);
  Object* object = entry_->live.load();
  if (object == nullptr || generation_of(*entry_) != bits.generation) return;
  object_ = object;
  code_ = Code::ok;
}

Pin::~Pin() {
  if (entry_ != nullptr) entry_->pins.fetch_sub(1);
  table(kind_).pins.fetch_sub(1);
}

}  // namespace st::capi
