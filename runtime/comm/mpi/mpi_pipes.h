// A rank's pipes to the others by messages of MPI, in a communicator of our own.
#pragma once

#include <scaletrain/transport.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace st::plugin {

class MpiPipes {
 public:
  /// Duplicates the host's communicator (start.group is an MPI_Comm*), or MPI_COMM_WORLD, in which all ranks have to call this. Initialises
  /// MPI where nobody has, and then finalises it when the process ends. Throws Refusal: wrong_state where MPI is over, or serves no several
  /// threads; invalid_argument where the communicator has another rank or size than was said; timeout, cancelled.
  explicit MpiPipes(const st_plugin_start& start);
  ~MpiPipes();
  MpiPipes(const MpiPipes&) = delete;
  MpiPipes& operator=(const MpiPipes&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // As st_transport_callbacks has it. Throws what MPI says where it says anything: most of its versions do not notice a rank that died.
  int64_t write(int to, std::span<const std::byte> bytes);
  int64_t read(int from, std::span<std::byte> bytes);

 private:
  struct Frame;
  struct Pipe;
  struct Ours;
  void receive(int from, Frame& frame) const;
  void let_go() noexcept;

  int rank_ = 0, size_ = 1;
  int frame_bytes_ = 0;
  std::unique_ptr<Ours> ours_;                // the communicator
  std::vector<std::unique_ptr<Pipe>> pipes_;  // null: this rank's own
};

}  // namespace st::plugin
