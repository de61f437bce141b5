package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.util.*;
import org.junit.jupiter.api.Test;
import org.scaletrain.*;

/** Passes invalid arrays to every call that takes an array. The error must name the array, nothing is written, and the object stays usable. */
class BadArraysTest {
  static final Set<String> ANY_SIZE = Set.of("Tensor.wrap", "Optimizer", "Accumulator", "LossScaler.unscale", "Optimizer.clipNorm");

  /** A call with one array that may be invalid. */
  interface Call {
    void with(Array array);
  }

  /** A call, the dims that it needs, and whether it writes or keeps the array. If it only reads it, strides and read-only memory are allowed. */
  record Place(Call call, long[] dims, boolean isWritten, boolean isHeld) {
    Place(Call call, boolean isWritten, boolean isHeld, long... dims) {
      this(call, dims, isWritten, isHeld);
    }
  }

  private static Array f32(long... dims) {
    return Array.allocate(DType.F32, dims);
  }

  private static Array square() {
    return f32(4, 4);
  }

  private static Map<String, Place> places(Context context) {
    Model model = Nets.mlp(context);
    Trainer trainer = Nets.trainer(context), beginning = Nets.trainer(context);
    trainer.step(Nets.batch());
    Predictor predictor = new Predictor(model);
    Gemm gemm = new Gemm(context, new GemmProblem(4, 4, 4));
    LossScaler scaler = new LossScaler(context);
    scaler.scale();
    Optimizer optimizer = new Optimizer(context, Batch.of("w", f32(8)), Map.of("optimizer", "adamw"));
    ParameterInfo weight = model.parameters().get(0);
    long[] of = weight.type().dims();
    Batch good = Nets.batch();

    Map<String, Place> all = new LinkedHashMap<>();
    all.put("Trainer.step", new Place(x -> trainer.step(Batch.of("x", x, "y", good.get("y"))), false, false, Nets.ROWS, 1));
    all.put("Trainer.forward", new Place(x -> beginning.forward(Batch.of("x", x)), false, false, Nets.ROWS, 1));
    all.put("Trainer.forwardInto", new Place(y -> beginning.forwardInto(good, Batch.of("prediction", y)), true, false, Nets.ROWS, 1));
    all.put("Trainer.gradient", new Place(to -> trainer.gradient(weight.name(), to), true, false, of));
    all.put("Model.get", new Place(to -> model.get(weight.name(), to), true, false, of));
    all.put("Model.set", new Place(from -> model.set(weight.name(), from), false, false, of));
    all.put("Predictor.run, in", new Place(x -> predictor.run(Batch.of("x", x), Batch.of("prediction", f32(Nets.ROWS, 1))), false, false, Nets.ROWS, 1));
    all.put("Predictor.run, out", new Place(y -> predictor.run(Batch.of("x", good.get("x")), Batch.of("prediction", y)), true, false, Nets.ROWS, 1));
    all.put("Gemm.run, a", new Place(a -> gemm.run(a, square(), square()), false, false, 4, 4));
    all.put("Gemm.run, c", new Place(c -> gemm.run(square(), square(), c), true, false, 4, 4));
    all.put("Gemm.pack", new Place(gemm::pack, false, false, 4, 4));
    all.put("LossScaler.unscale", new Place(scaler::unscale, true, false, 8));
    all.put("Optimizer.clipNorm", new Place(gradient -> Optimizer.clipNorm(context, 1, gradient), true, false, 8));
    all.put("Optimizer.step", new Place(optimizer::step, false, false, 8));
    all.put("Optimizer", new Place(w -> new Optimizer(context, Batch.of("w", w), Map.of("optimizer", "sgd")), true, true, 8));
    all.put("Accumulator", new Place(gradient -> new Accumulator(context, 2, gradient), true, true, 8));
    all.put("Data.arrays", new Place(x -> new Trainer(model, Nets.recipe(), Data.arrays(context, Batch.of("x", x, "y", good.get("y")))).step(),
                               false, true, Nets.ROWS, 1));
    all.put("Tensor.wrap", new Place(array -> Tensor.wrap(context, array), false, true, 8));
    return all;
  }

  private static void refused(String where, Place place, Array bad) {
    ScaleTrainException refusal = assertThrows(ScaleTrainException.class, () -> place.call().with(bad), where + " took " + bad);
    assertTrue(refusal.getMessage().length() > 15 && refusal.getMessage().contains(":"), where + ": " + refusal.getMessage());
  }

  @Test
  void isRefusedWhereItsElementsAreOthers() {
    try (Context context = new Context()) {
      places(context).forEach((where, place) -> {
        if (where.equals("Tensor.wrap")) return;  // accepts any dtype
        DType other = where.startsWith("Model") ? DType.U8 : DType.I32;  // a model converts between numeric dtypes
        refused(where, place, Array.allocate(other, place.dims()));
      });
    }
  }

  @Test
  void isRefusedWhereItIsTooSmallOrNone() {
    try (Context context = new Context()) {
      places(context).forEach((where, place) -> {
        long[] other = place.dims().clone();
        other[other.length - 1] += 1;  // one too many, then one too few
        if (!ANY_SIZE.contains(where)) refused(where, place, f32(other));
        other[other.length - 1] -= 2;
        if (!ANY_SIZE.contains(where)) refused(where, place, f32(other));
        refused(where, place, null);
      });
    }
  }

  @Test
  void isRefusedWhereItIsReadOnlyAndWritten() {
    try (Context context = new Context()) {
      places(context).forEach((where, place) -> {
        if (place.isWritten()) refused(where, place, f32(place.dims()).readOnly());
        else if (!place.isHeld()) place.call().with(f32(place.dims()).readOnly());
      });
    }
  }

  @Test
  void isRefusedWhereItIsOfADevice() {
    try (Context context = new Context()) {
      places(context).forEach((where, place) -> {
        Array array = f32(place.dims());
        assertEquals(0, array.device());
        Array there = array.onDevice(1).reshape(place.dims());
        assertEquals(1, there.device());
        String why = assertThrows(InvalidArgument.class, () -> place.call().with(there), where).getMessage();
        assertTrue(why.contains("has device 1; allowed is 0"), where + ": " + why);
        place.call().with(there.onDevice(0));
      });
    }
  }

  @Test
  void isRefusedOnTheHeapWhereItIsHeld() {
    try (Context context = new Context()) {
      places(context).forEach((where, place) -> {
        int count = 1;
        for (long dim : place.dims()) count *= (int) dim;
        Array heap = Array.of(new float[count], place.dims());
        if (place.isHeld()) refused(where, place, heap);
        else place.call().with(heap);
      });
    }
  }

  @Test
  void withStridesIsWrittenWhereItIsOrRefused() {
    try (Context context = new Context()) {
      places(context).forEach((where, place) -> {
        long[] wide = Arrays.copyOf(place.dims(), place.dims().length + 1), strides = new long[place.dims().length];
        wide[wide.length - 1] = 2;
        long stride = 2;
        for (int i = strides.length - 1; i >= 0; --i) {
          strides[i] = stride;
          stride *= place.dims()[i];
        }
        Array whole = f32(wide);
        for (int i = 0; i < whole.size(); ++i) whole.floats().put(i, 0.5f);
        try {
          place.call().with(whole.strided(place.dims(), strides));
        } catch (ScaleTrainException refusal) {
          String why = refusal.getMessage();
          assertTrue(why.contains("stride") || why.contains("contiguous") || why.contains("row-major"), where + ": " + why);
        }
        for (int i = 1; i < whole.size(); i += 2) assertEquals(0.5f, whole.floats().get(i), where + " wrote between the elements");
      });
    }
  }
}
