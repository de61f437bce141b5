// A model: a graph and its parameters.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/host_view.h"
#include "base/text.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/safetensors.h"
#include "exec/storage.h"
#include "ir/program.h"
#include "model/sharded_model_call.h"
#include "model/weights_gate.h"
#include "model/weights_match.h"
#include "parts/context.h"

namespace st {

class Model {
 public:
  /// Initialises parameters from (seed, name, element). Throws out_of_memory before anything is allocated, invalid_argument for a bad
  /// graph. In a context with late_parameters, parameters are allocated, and out_of_memory is thrown, on first use.
  Model(std::shared_ptr<Context> context, Program program, uint64_t seed);

  const Program& program() const { return program_; }
  Context& context() const { return *context_; }
  const std::shared_ptr<Context>& shared_context() const { return context_; }
  Storage& storage() {
    require_whole("model");
    return storage_;
  }
  WeightsGate& gate() const { return gate_; }

  /// Slots of role parameter, in graph order.
  const std::vector<SlotId>& parameters() const { return parameters_; }
  const Slot& slot(SlotId id) const { return program_.slot(id); }
  int64_t elements() const;                             // of all parameters
  SlotId parameter_named(std::string_view name) const;  // throws not_found, suggests the nearest
  Address data(SlotId parameter) const;                 // device memory, row-major; sharded: this rank's shard

  /// Reduces each parameter to a rank's elements of it under ZeRO-3, in a pipeline or with tensor ranks, by the slots of `plan`, that
  /// rank's program of this model.
  /// - Existing values of the shards are kept; parameters that are not made yet are made as shards only. They are in the host's memory if
  ///   `on_host`, or if the parameters are (move_to_host).
  /// - Afterwards set(), read() and load() take only these elements of their input, copy() takes places of shards, and calls that need
  ///   a whole parameter throw wrong_state.
  /// - `agree` is called when nothing can fail any more; it may throw to refuse.
  /// Throws busy while another object uses the storage, wrong_state if the model has other shards already.
  void keep_pieces(const Program& plan, bool on_host = false, const std::function<void()>& agree = {});
  /// The storage of a sharded model, and whether the model is sharded.
  Storage& piece_storage() { return storage_; }
  bool is_sharded() const { return held_ == Held::pieces; }
  /// Whether shards are from different steps, on this rank or another: steps must be refused until the weights are loaded again.
  bool has_torn_state() const { return has_torn_state_; }
  void set_mixed(bool has_torn_state) { has_torn_state_ = has_torn_state; }
  /// Call it when the ranks have sharded the model together. `number`: equal on all ranks, by which collective calls identify this model.
  /// `keys`: the settings for which they did, for errors, "zero 3, stages 2".
  void set_sharding(uint64_t number, std::string keys) {
    number_ = number;
    sharding_keys_ = std::move(keys);
  }
  /// "rank 1 of 2 (zero 3)"; empty: not sharded.
  std::string shard_holder() const { return is_sharded() ? text(whose_, " (", sharding_keys_, ")") : ""; }
  /// Whether this rank has every element of a parameter, so that reading it needs no other rank.
  bool has_all_of(SlotId parameter) const { return piece(parameter).elements == slot(parameter).type.shape.elements(); }
  /// Before that, a text that is equal on ranks with equal models: "digest ..", or "made late, of seed 1".
  std::string weights_fact() const;
  /// The elements of a parameter that this model holds.
  PieceRange piece(SlotId parameter) const;
  /// For PlanOptions::gathers; null: the model is not sharded.
  const Program* gathers() const { return is_sharded() ? &gathers_ : nullptr; }
  /// Byte offset of a parameter, or its shard, in the storage and in others of its layout.
  int64_t offset(SlotId parameter) const { return offsets_[static_cast<size_t>(parameter)]; }
  /// Throws wrong_state, naming `call`, if whole parameters cannot be read: the model is sharded and `collective` is null, or
  /// has_torn_state(). Tells `collective` which model the call is on.
  void require_readable(const char* call, ShardedModelCall* collective) const;

  // `collective`: on a sharded model, calls that need a whole parameter are collective calls of all ranks with equal arguments
  // (ShardedModelCall); without `collective` they throw wrong_state, but for get() of a parameter that this rank has whole.

  /// Copies a whole parameter; the view has exactly its shape and any floating type. set() throws not_finite for NaN, before anything
  /// changes. At the gate a change counts as an update and a read as a reader: busy while a step's update is in progress.
  void get(SlotId parameter, const HostView& to, ShardedModelCall* collective = nullptr) const;
  void set(SlotId parameter, const HostView& from);

  /// The same for other values of the parameter's type (a moving average), whose bytes `read` supplies.
  using ReadPart = std::function<void(int64_t first, std::span<std::byte> out)>;  // whole elements
  void get_by(SlotId parameter, const HostView& to, ShardedModelCall* collective, const ReadPart& read) const;
  void get_on_device(SlotId parameter, const HostView& to, ShardedModelCall* collective, const ReadPart& read) const;
  /// Copies all parameters from device memory: one address each, in the order of parameters().
  void copy(std::span<const Address> places);

  /// Moves the parameters to a file in `folder`, for everything that uses them. Throws io, unsupported if the host's allocator provides the
  /// memory, busy while a step's update is in progress; nothing has changed then.
  void move_to_file(const std::string& folder);
  /// Moves the parameters of a device to its host's memory until the model is freed. Kernels compute with copies of them then
  /// (PlanOptions::parameters_on_host). Calls `before_swap` when only the swap is left to do; nothing has changed if that throws. Throws
  /// out_of_memory, busy while another object uses the storage.
  void move_to_host(const std::function<void()>& before_swap);
  /// Undoes move_to_host() or move_to_file(), after a failure of what needed it. Throws like move_to_host().
  void move_to_device();
  bool is_on_host() const { return storage_.pinned(Arena::parameters) != nullptr; }

  /// The same graph with its own copy of all parameters, gathered if the model is sharded. keeps false: this rank only takes part in the
  /// gather for the others and gets null.
  std::shared_ptr<Model> clone(ShardedModelCall* collective = nullptr, bool keeps = true) const;
  /// The same graph without parameters: do not call functions that read or change them.
  std::shared_ptr<Model> without_parameters() const;
  /// this += t (from - this), in f32; t = 1 copies the bits. Throws invalid_argument if the parameters differ; names the first.
  void blend(const Model& from, double t);
  /// XXH3-128 over every parameter in name order: name, dtype, shape, bytes. Like Trainer::state_digest, without the optimizer's state.
  std::string digest(ShardedModelCall* collective = nullptr) const;
  /// Copies the bytes of all parameters, or of the shards, into a storage of the same layout. The caller holds the gate.
  void copy_parameters(Storage& to) const;

  /// Writes one safetensors file or stream; names and shapes as in the graph, tensors in the order of arrange(). In a collective call rank
  /// 0 writes the file, or each rank its own stream. Throws what `write` throws, in a collective call on all ranks.
  void write(const std::string& path, ShardedModelCall* collective = nullptr) const;
  void write(const WriteBytes& write, ShardedModelCall* collective = nullptr) const;
  /// Reads any path that WeightFiles accepts; converts from the floating types. Throws not_found, corrupt, invalid_argument, not_finite
  /// (NaN); no parameter has changed then. The report's names are filled even if it throws because they did not match.
  void read(const std::string& path, const ReadOptions& options, ReadReport& report);
  /// Reads a stream of one file to the end of its tensors and no further. Buffers the parameters' size until all data has arrived.
  void read(const ReadBytes& read, const ReadOptions& options, ReadReport& report);
  /// Loads the weights of a checkpoint and ignores the rest; for one that a host saved, its buffers. Like read(), on the context's threads.
  /// If there is no memory for a copy of the weights, it verifies the whole checkpoint first.
  void load(const CheckpointReader& reader, const ReadOptions& options, ReadReport& report);

 private:
  Model(std::shared_ptr<Context> context, Program program);  // does not allocate the parameters

  /// The contents of the storage.
  enum class Held { nothing, whole, pieces };

  static constexpr int64_t kPiece = 1LL << 18;  // bytes per read or write of a stream

  void require_whole(const char* call) const;
  void require_one_step(const char* call) const;
  void require_made() const;
  void read_bytes(SlotId parameter, int64_t first, std::span<std::byte> out, ShardedModelCall* collective) const;
  void each_part(SlotId parameter, std::vector<std::byte>& room, ShardedModelCall* collective,
                 const std::function<void(int64_t first, std::span<const std::byte> part)>& take) const;
  std::exception_ptr stream(const WriteBytes& write, ShardedModelCall* collective) const;
  void move(bool to_host, const std::function<void()>& before_swap);
  void make(const Storage& in, std::span<const int64_t> offsets, std::span<const PieceRange> pieces) const;
  void allocate() const;  // all zero

  std::shared_ptr<Context> context_;
  Program program_;
  uint64_t seed_ = 0;
  std::string made_of_;  // late parameters: what they are made from
  mutable std::mutex making_;
  mutable std::map<SlotId, Initializer> given_;  // the host's initial values, until they are in the storage
  mutable std::atomic<Held> held_ = Held::nothing;
  mutable Storage storage_;
  mutable WeightsGate gate_;
  std::vector<SlotId> parameters_;
  std::vector<int64_t> offsets_;    // by slot, in the parameter arena
  int64_t bytes_ = 0;               // of that arena
  std::vector<PieceRange> pieces_;  // by slot; empty: not sharded
  Program gathers_;                 // slots and mesh of the plan that defines the shards
  std::string whose_;               // "rank 1 of 2"
  std::string sharding_keys_;
  uint64_t number_ = 0;
  std::atomic<bool> has_torn_state_ = false;
};

}  // namespace st
