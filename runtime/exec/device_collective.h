// The collectives of a plan on operands in a device's memory: where these lie, in which order ranks get and fold them. How elements come
// from other ranks is the part of device_exchange.h (a device that the ranks share) and network_exchange.h (a device each).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "comm/communicator.h"
#include "exec/device_offer.h"
#include "plan/exchange_plan.h"

namespace st {

/// One collective. The order of sums and their roundings are the direct exchange's (comm/direct_exchange.h).
class DeviceCollective {
 public:
  /// As PlannedExchange. Borrows all arguments. `are_read_late`: other ranks read the operands where they lie, maybe after this rank has
  /// given its sums: terms that these would overwrite are copied first. Otherwise they have left before.
  DeviceCollective(const ExchangePlan& exchange, const Program& program, const Call& call, Communicator& ranks, Backend& backend,
                   bool are_read_late);
  virtual ~DeviceCollective();
  DeviceCollective(const DeviceCollective&) = delete;
  DeviceCollective& operator=(const DeviceCollective&) = delete;

  /// Forgets where operands are: the next run looks for them.
  void place() { is_placed_ = false; }
  /// Gives the collective to `stream`, after the work that makes the operands; work given after this returns may write them again. False:
  /// the ranks' devices are not as this needs them, and nothing of the collective has been run. Throws invalid_argument for an operand that
  /// is not in the device's memory, and what the communicator throws; no other rank reads the operands then.
  bool run(Stream& stream, int contributors);

  virtual int64_t bytes() const { return staged_ ? staged_->size() : 0; }  // memory of its own

 protected:
  /// The call, in which all ranks must agree, and the bytes of elements that this rank sends.
  struct Round {
    CollectiveCall call;
    uint64_t detail = 0;
    int64_t sent = 0;
  };
  /// Goes through the elements of a list of pieces in contiguous runs.
  struct Walk {
    std::span<const DevicePiece> pieces;  // those that are left
    int64_t width = 0, done = 0;

    void start(const DevicePieces& all, int64_t bytes) {
      pieces = all;
      width = bytes;
      done = 0;
      skip_empty();
    }
    int64_t together() const { return pieces.front().elements - done; }
    Address take(int64_t elements) {
      const Address place = pieces.front().data + done * width;
      done += elements;
      skip_empty();
      return place;
    }
    void skip_empty() {
      for (; !pieces.empty() && done == pieces.front().elements; done = 0) pieces = pieces.subspan(1);
    }
  };

  // As run(). The pieces of a rank are cut alike on all ranks.

  /// Each rank sums the elements of parts() that it owns.
  virtual bool reduce(Stream& stream, const Round& round, int contributors, bool adds) = 0;
  /// Each rank gets the elements of all, its own being among `parts`.
  virtual bool gather(Stream& stream, const Round& round, const std::vector<DevicePieces>& parts) = 0;
  /// Each rank gets parts()[0] of all and sums those of the contributors; a fast one (ExchangePlan::is_fast) sums those of all at once.
  virtual bool sum_all(Stream& stream, const Round& round, int contributors, bool adds) = 0;

  /// Adds up these ranks' terms in rank order, into this rank's sums.
  void fold(Stream& stream, std::span<const DevicePieces* const> terms, bool adds);
  static int64_t length_of(const DevicePieces& pieces);  // elements

  const std::vector<DevicePieces>& parts() const { return parts_; }  // by owning rank, or one
  const DevicePieces& sums() const { return into_; }                 // of reductions: where this rank's lie
  SumType sum_type() const { return exchange_.sums; }
  /// Whether sums lie where other ranks read what is added.
  bool overwrites_terms() const { return overwrites_terms_; }
  int rank() const { return ranks_.rank(); }
  int size() const { return ranks_.size(); }

  Communicator& ranks_;
  Backend& backend_;
  const DType dtype_;
  const bool is_fast_;   // as ExchangePlan has it
  const bool is_whole_;  // each rank gets the sum of whole terms: one part

 private:
  struct Copy {
    Address to, from;
    int64_t bytes;
  };

  void place_now(Stream& stream);
  void place_parts(std::span<const Operand> operands);
  void place_rows(const Operand& whole);
  void place_shares(const Operand& whole, std::vector<DevicePieces>& parts) const;
  void place_own(std::span<const Operand> own);
  void stage(Stream& stream);
  bool is_read_by_others(size_t part) const;
  Round reduction(int contributors) const;
  Round gathering(const std::vector<DevicePieces>& parts) const;
  Round terms() const;
  Round whole_sum() const;

  const ExchangePlan& exchange_;
  const Program& program_;
  const Call& call_;
  const std::string label_;

  bool is_placed_ = false, overwrites_terms_ = false;
  std::vector<DevicePieces> parts_;
  std::vector<DevicePieces> sum_parts_;  // tensor_sum, unless whole: where each rank's part of the sum lies
  DevicePieces into_;                    // reductions: the sums that this rank makes
  std::vector<Copy> copies_;             // made before the others read
  std::unique_ptr<Buffer> staged_;       // parts that the sums would overwrite, while others read them
  // For folds: a walk through the pieces of each term and of the sums.
  std::vector<Walk> walks_;
  std::vector<Address> addresses_;
  const bool are_read_late_;
};

}  // namespace st
