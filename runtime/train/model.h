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

#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/safetensors.h"
#include "exec/storage.h"
#include "ir/program.h"
#include "train/context.h"
#include "train/host_view.h"
#include "train/joint_call.h"
#include "train/weights_gate.h"
#include "train/weights_match.h"

namespace st {

class Model {
 public:
  /// Parameters are made from (seed, name, element). Throws out_of_memory before anything is allocated, invalid_argument for a bad graph.
  /// Of a context with late_parameters they are made, and out_of_memory is thrown, where they are first asked for.
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
  SlotId parameter_named(std::string_view name) const;  // throws not_found, names the nearest
  std::byte* data(SlotId parameter) const;              // device memory, row-major; in pieces: this rank's

  /// Leaves of each parameter what a rank has under ZeRO-3, by slot of `plan`, that rank's program of this model: pieces that were there
  /// are kept, where there are no parameters yet these alone are made. From then on set(), read() and load() take those elements of what
  /// they are given, copy() has their places, and what needs all of a parameter throws wrong_state. Throws busy while another has its
  /// storage, wrong_state where it has pieces of other elements. `agree` is called once nothing can fail here, and may refuse.
  void keep_pieces(const Program& plan, const std::function<void()>& agree = {});
  /// The storage then, and whether it is so.
  Storage& piece_storage() { return storage_; }
  bool is_in_pieces() const { return held_ == Held::pieces; }
  /// Some of the pieces are of another step than others, on this rank or another: what steps with them is to be refused until they are
  /// loaded anew.
  bool is_mixed() const { return is_mixed_; }
  void set_mixed(bool is_mixed) { is_mixed_ = is_mixed; }
  /// By what joint calls know it: alike on all ranks, which have just had their pieces together.
  void set_number(uint64_t number) { number_ = number; }
  /// What ranks whose models are the same have alike before that: "digest ..", or "made late, of seed 1".
  std::string weights_fact() const;
  /// The elements that are here.
  struct Piece {
    int64_t first = 0, elements = 0;
    bool operator==(const Piece&) const = default;
  };
  Piece piece(SlotId parameter) const;
  /// For PlanOptions::gathers; null: the model is whole.
  const Program* gathers() const { return is_in_pieces() ? &gathers_ : nullptr; }
  /// Where a parameter, or its piece, begins in the storage, and in others of its layout.
  int64_t offset(SlotId parameter) const { return offsets_[static_cast<size_t>(parameter)]; }
  /// Throws wrong_state, naming `call`, where not all of each parameter is to be had.
  void require_readable(const char* call, JointCall* joint) const;

  // `joint`: of a model in pieces what needs all of a parameter is called by all ranks together (JointCall), alike; without it, it throws
  // wrong_state.

  /// Copies a whole parameter; the view has exactly its shape and any floating type. set() throws not_finite for NaN, before anything has
  /// changed. What changes parameters is an update for the gate, what reads them a reader: busy while a step's update is on.
  void get(SlotId parameter, const HostView& to, JointCall* joint = nullptr) const;
  void set(SlotId parameter, const HostView& from);

  /// The same of what the parameter might hold (a moving average): `read` gives bytes of that.
  using ReadPart = std::function<void(int64_t first, std::span<std::byte> out)>;
  void get_by(SlotId parameter, const HostView& to, JointCall* joint, const ReadPart& read) const;
  /// Sets all parameters to what lies there, device memory in the order of parameters().
  void copy(std::span<const std::byte* const> places);

  /// The parameters lie in a file in `folder` from here on, for all that know them. Throws io, or unsupported where memory is the host's
  /// alloc's; then nothing has changed. Busy while a step's update is on.
  void move_to_file(const std::string& folder);

  /// The same graph, with its own copy of the parameters, of one in pieces all of them. `keeps`: false: this rank helps the others to
  /// theirs alone, and has none: null.
  std::shared_ptr<Model> clone(JointCall* joint = nullptr, bool keeps = true) const;
  /// The same graph, whose parameters lie elsewhere: what reads or changes them is not to be called.
  std::shared_ptr<Model> without_parameters() const;
  /// this += t (from - this), in f32; t = 1 copies the bits. Throws invalid_argument for parameters that differ, naming the first.
  void blend(const Model& from, double t);
  /// XXH3-128 over every parameter in name order: name, dtype, shape, bytes. As Trainer::state_digest, without the optimizer's state.
  std::string digest(JointCall* joint = nullptr) const;
  /// The bytes of all parameters, or of the pieces, into a storage of the same layout. The caller holds the gate.
  void copy_parameters(Storage& to) const;

  /// One safetensors file or stream; names and shapes as in the graph, tensors in the order of arrange(). Throws what `write` throws, in a
  /// joint call on all ranks: each has a stream of its own, a file rank 0 alone.
  void write(const std::string& path, JointCall* joint = nullptr) const;
  void write(const WriteBytes& write, JointCall* joint = nullptr) const;
  /// From what WeightFiles takes by that path; converts from the floating types. Throws not_found, corrupt, invalid_argument, not_finite
  /// (NaN); then no parameter has changed. The report's names are filled also when it throws since they did not fit.
  void read(const std::string& path, const ReadOptions& options, ReadReport& report);
  /// From a stream of one file, which is read to the end of its tensors and no further. Waits in memory of the parameters' size until all
  /// has come.
  void read(const ReadBytes& read, const ReadOptions& options, ReadReport& report);
  /// The weights of a checkpoint, whatever else it has; of one that a host saved, its buffers. As read(), on the context's threads. No room
  /// for a copy of the weights: all of the checkpoint is verified first.
  void load(const CheckpointReader& reader, const ReadOptions& options, ReadReport& report);

 private:
  Model(std::shared_ptr<Context> context, Program program);  // without memory of its parameters

  /// What lies in the storage.
  enum class Held { nothing, whole, pieces };

  static constexpr int64_t kPiece = 1LL << 18;  // of which a stream is given or asked for at a time

  void require_whole(const char* call) const;
  void require_made() const;
  void read_bytes(SlotId parameter, int64_t first, std::span<std::byte> out, JointCall* joint) const;
  void each_part(SlotId parameter, std::vector<std::byte>& room, JointCall* joint,
                 const std::function<void(int64_t first, std::span<const std::byte> part)>& take) const;
  std::exception_ptr stream(const WriteBytes& write, JointCall* joint) const;
  void make(const Storage& in, std::span<const int64_t> offsets, std::span<const Piece> pieces) const;
  void allocate() const;  // all zero

  std::shared_ptr<Context> context_;
  Program program_;
  uint64_t seed_ = 0;
  std::string made_of_;  // where parameters are made late: what they are made of
  mutable std::mutex making_;
  mutable std::map<SlotId, Initializer> given_;  // the host's own first values, until they are in the storage
  mutable std::atomic<Held> held_ = Held::nothing;
  mutable Storage storage_;
  mutable WeightsGate gate_;
  std::vector<SlotId> parameters_;
  std::vector<int64_t> offsets_;  // by slot, in the parameter arena
  int64_t bytes_ = 0;             // of that arena
  std::vector<Piece> pieces_;     // by slot; empty: whole
  Program gathers_;               // slots, cuts and mesh of the plan that they are of
  std::string whose_;             // "rank 1 of 2"
  uint64_t number_ = 0;
  std::atomic<bool> is_mixed_ = false;
};

}  // namespace st
