#include "backend/cpu/gemm/product.h"

#include "backend/cpu/gemm/epilogue_rows.h"
#include "backend/cpu/gemm/in_place.h"
#include "backend/cpu/gemm/micro.h"
#include "backend/cpu/gemm/pack.h"
#include "backend/cpu/gemm/packing_order.h"
#include "backend/cpu/gemm/tile_task.h"
#include "backend/cpu/gemm/tile_write.h"

namespace st::cpu::ST_ISA {

using namespace micro;

namespace {

/// One block of C and the K blocks that are packed together.
class Step {
 public:
  /// new_a, new_b: the block of A or B is not the one that was packed last.
  Step(const Product& product, const BlockOrigin& at, bool new_a, bool new_b, int threads)
      : product_(product),
        at_(at),
        packs_a_(new_a && panels_.packed_a == nullptr),
        packs_b_(new_b && panels_.packed_b == nullptr && !packs_by_task(cut_.p, cut_.s)),
        grid_(task_grid(cut_.s, cut_.rows(at.m), cut_.columns(at.n), threads, packs_a_ && cut_.p.a.column == 1)),
        own_rows_(!kOfTiles && packs_a_ && grid_.across == 1),
        on_the_way_(kHasPackingKernel && packs_b_ && gains_on_the_way(threads)) {}

  void pack(Workers& workers) const {
    const int64_t panels_a = ceil_div(cut_.rows(at_.m), cut_.s.mr), panels_b = ceil_div(cut_.columns(at_.n), cut_.s.nr);
    const int64_t tasks_a = packs_a_ && !own_rows_ ? ceil_div(panels_a, kPanelsPerPackTask) : 0, tasks_b = tasks_of_b(panels_b);
    if (tasks_a + tasks_b == 0) return;
    workers.run(tasks_a + tasks_b, [&](int64_t t) {
      const int64_t first = (t < tasks_a ? t : t - tasks_a) * kPanelsPerPackTask;
      if (t < tasks_a) {
        pack_rows(first, std::min(panels_a, first + kPanelsPerPackTask));
      } else if (!cut_.s.packs_b()) {
        panels_.pack_columns_of_b(at_.n, at_.k, panels_b - 1, panels_b,
                                  panels_.block_b - (panels_b - 1) * cut_.s.nr * cells_of(cut_.depth(at_.k)));
      } else {
        const int64_t from = on_the_way_ ? panels_b - 1 : first;
        cut_.each_k_block(at_.k, [&](int64_t k) {
          panels_.pack_columns_of_b(at_.n, k, from, std::min(panels_b, from + kPanelsPerPackTask),
                                    panels_.block_b + cut_.in_block_of_b(at_.n, k));
        });
      }
    });
  }

  void multiply(Workers& workers) const {
    SumBuffers buffers(kOfTiles ? sum_rooms(cut_.p, cut_.s) : 0, cut_.p.k > cut_.s.block_k);
    if (!kHasPackingKernel || !on_the_way_) return workers.run(grid_.count(), [&](int64_t t) { run_task(t, false, buffers); });
    // The first tasks of rows pack all of B for the others.
    workers.run(grid_.across, [&](int64_t t) { run_task(t * grid_.down, true, buffers); });
    const int64_t others = grid_.down - 1;
    workers.run(grid_.across * others, [&](int64_t t) { run_task(t / others * grid_.down + 1 + t % others, false, buffers); });
  }

 private:
  bool in_place() const { return !cut_.s.packs_b() && panels_.packed_b == nullptr; }

  /// Whether the first tile on each panel of B reads it in place and packs it, instead of a separate pass. No bit depends on it.
  bool gains_on_the_way(int threads) const {
    const GemmProblem& p = cut_.p;
    if (!cpu::gains_on_the_way(p.b.row * 4) || !cut_.s.packs_b() || packing_kernel(std::min(cut_.s.mr, cut_.rows(at_.m))) == nullptr)
      return false;
    if (p.b_type != DType::f32 || p.b.column != 1 || p.k == 0) return false;
    return grid_.across % threads == 0 || grid_.across >= 8 * threads;  // since all threads wait for the first tasks of rows
  }

  int64_t tasks_of_b(int64_t panels) const {
    if (!packs_b_) return 0;
    const int64_t partial = cut_.columns(at_.n) % cut_.s.nr != 0 ? 1 : 0;  // the last panel
    if (on_the_way_) return partial;
    if (cut_.s.packs_b()) return ceil_div(panels, kPanelsPerPackTask);
    return kPairs ? 0 : partial;
  }

  void pack_rows(int64_t first, int64_t last) const {
    cut_.each_k_block(at_.k,
                      [&](int64_t k) { panels_.pack_rows_of_a(at_.m, k, first, last, panels_.block_a + cut_.in_block_of_a(at_.m, k)); });
  }

  void run_task(int64_t t, bool packing, SumBuffers& buffers) const {
    const TaskBlock block = grid_.at(t);
    if constexpr (kOfTiles) {
      const int64_t buffer = buffers.take(t);
      tile_task(product_, at_, block, buffer, in_place());
      buffers.give_back(buffer);
    } else {
      if (own_rows_) pack_rows(block.row / cut_.s.mr, ceil_div(block.row + block.rows, cut_.s.mr));
      for (int64_t i = 0; i < cut_.k_blocks(at_.k); ++i) {
        const BlockOrigin at{at_.m, at_.n, at_.k + i * cut_.s.kc};
        in_place() ? unpacked_task(at, block) : packed_task(at, block, packing);
      }
    }
    const bool is_last = cut_.p.k - at_.k <= cut_.s.block_k;
    if (const GemmEpilogue* const epilogue = product_.x.epilogue; is_last && epilogue != nullptr && epilogue->changes_c())
      apply_epilogue(*epilogue,  // C is still in L2
                     {product_.x.c, cut_.p.c, cut_.p.c_type, at_.m + block.row, block.rows, at_.n + block.column, block.columns});
  }

  void unpacked_task(const BlockOrigin& at, const TaskBlock& block) const {
    alignas(64) float waiting[kSumsInPlace * kTileColumns];
    task_in_place(product_, at, block, waiting);
  }

  void packed_task(const BlockOrigin& at, const TaskBlock& block, bool packing) const {
    const TileSchedule& s = cut_.s;
    const int64_t depth = cells_of(cut_.depth(at.k)), sum_stride = cut_.columns(at.n);
    const int64_t row_end = block.row + block.rows, column_end = block.column + block.columns;
    const Cell *const panels_of_a = panels_.of_a(at.m, at.k), *const panels_of_b = panels_.of_b(at.n, at.k);
    const int64_t row_panels = ceil_div(block.rows, s.mr);
    for (int64_t j = block.column; j < column_end; j += s.nr) {
      const int64_t columns = std::min(s.nr, column_end - j);
      for (int64_t i = block.row; i < row_end; i += s.mr) {
        Tile t{.row = at.m + i, .rows = std::min(s.mr, row_end - i), .column = at.n + j, .columns = columns, .k = at.k, .depth = depth};
        t.a = panels_of_a + i * depth;
        t.b = panels_of_b + j * depth;
        t.b_stride = cut_.width_of(columns);
        if (product_.sums != nullptr) t.sum = product_.sums + i * sum_stride + j, t.sum_stride = sum_stride;
        const int64_t number = (i - block.row) / s.mr;  // of this panel of B
        if (kHasPackingKernel && packing && number == 0 && columns == s.nr) {
          t.packed = panels_.block_b + cut_.in_block_of_b(at.n, at.k) + j * depth;
          t.b = static_cast<const Cell*>(panels_.b) + at.k * cut_.p.b.row + at.n + j;
          t.b_stride = cut_.p.b.row;
        }
        const bool fetching = kHasPackingKernel && packing && fetches_next_panel(t, at, j + s.nr, number);
        if (!fetching && j == block.column && i + s.mr < row_end) {  // the task's panels of A are new
          t.ahead = t.a + s.mr * depth;
          t.ahead_step = s.mr;
        } else if (!fetching && j + s.nr < column_end) {  // each tile of this panel of B fetches a share of the next one
          t.ahead_step = ceil_div(s.nr, row_panels);
          t.ahead = panels_of_b + (j + s.nr) * depth + number * depth * t.ahead_step;
        }
        write_tile(product_, t);
      }
    }
  }

  /// Makes tile number `tile` of a task prefetch its share of the next panel of B to be packed on the way, at column j of the block.
  bool fetches_next_panel(Tile& t, const BlockOrigin& at, int64_t j, int64_t tile) const {
    const int64_t line = (tile - 1) * kLine / static_cast<int64_t>(sizeof(Cell));          // each tile fetches a line of every row
    if (tile < 1 || line > cut_.s.nr || j + cut_.s.nr > cut_.columns(at.n)) return false;  // if lines are not aligned, also the last
    t.ahead = static_cast<const Cell*>(panels_.b) + at.k * cut_.p.b.row + at.n + j + std::min(line, cut_.s.nr - 1);
    t.ahead_step = cut_.p.b.row;
    return true;
  }

  const Product& product_;
  const Panels& panels_ = product_.panels;
  const Blocking& cut_ = panels_.cut;
  const BlockOrigin at_;
  const bool packs_a_, packs_b_;
  const TaskGrid grid_;
  const bool own_rows_;    // each task packs its rows of A
  const bool on_the_way_;  // the first tasks of rows pack B
};

}  // namespace

void Product::run(Workers& workers) const {
  const GemmProblem& p = panels.cut.p;
  const TileSchedule& s = panels.cut.s;
  const int64_t kn = ceil_div(p.n, s.block_n), km = ceil_div(p.m, s.block_m), kk = std::max<int64_t>(1, ceil_div(p.k, s.block_k));
  int64_t last_a = -1, last_b = -1;  // blocks packed at present
  for (int64_t i = 0; i < kn * km * kk; ++i) {
    const int64_t n = i / (km * kk);
    const int64_t rest = i % (km * kk);
    const int64_t m = s.order == LoopOrder::n_k_m ? rest % km : rest / kk;
    const int64_t k = s.order == LoopOrder::n_k_m ? rest / km : rest % kk;
    const int64_t a = m * kk + k, b = n * kk + k;
    const Step step(*this, {m * s.block_m, n * s.block_n, k * s.block_k}, a != last_a, b != last_b, workers.threads());
    step.pack(workers);
    step.multiply(workers);
    last_a = a;
    last_b = b;
  }
}

}  // namespace st::cpu::ST_ISA
