package org.scaletrain;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.scaletrain.internal.DataSplit;
import org.scaletrain.internal.Fields;

/** Rows that training draws from, in an endless shuffled stream that is a function of the seed alone. */
public final class Data extends Handle {
  final org.scaletrain.internal.Data raw;

  private Data(org.scaletrain.internal.Data raw, Object... keeps) {
    this.raw = raw;
    raw.keeps = keeps;
  }

  /** The parts of {@link #split}. */
  public record Split(Data training, Data validation) {}

  /** A text file, a folder of them or a token file, in rows of {@code context} tokens. */
  public static Data files(Context context, Path path, int contextTokens) {
    return files(context, path, Map.of("context", contextTokens));
  }

  /** options: {@code context}, tokens in a row. */
  @OfC("st_data_files")
  public static Data files(Context context, Path path, Map<String, ?> options) {
    return new Data(
        org.scaletrain.internal.Data.files(given(context, "Data.files").raw, path.toString(), Json.options(options)), context.raw);
  }

  /**
   * The program's arrays, not copied: direct ones alone. Their first dimension is the rows. They are kept, and must not be written to,
   * until the data and all that uses it is gone.
   */
  @OfC("st_data_arrays")
  public static Data arrays(Context context, Batch arrays) {
    Object[] held = given(arrays, "Data.arrays").held("Data.arrays").pairs();
    if (arrays.size() == 0) throw new InvalidArgument("Data.arrays: there is none, so there are no rows");
    ArrayType first = arrays.get(0).type();
    if (first.rank() == 0)
      throw new InvalidArgument("Data.arrays: \"" + arrays.names().get(0) + "\" has no dimension, so there are no rows");
    return new Data(org.scaletrain.internal.Data.arrays(given(context, "Data.arrays").raw, first.dim(0), held, held), context.raw, held);
  }

  /** Rows made when they are wanted. fields: dtype and dims of a row of each, by name. */
  @OfC("st_data_callback")
  public static Data rows(Context context, long rows, Map<String, ArrayType> fields, RowFiller filler) {
    Fields types = new Fields();
    List<String> names = List.copyOf(fields.keySet());
    for (String name : names) {
      ArrayType type = fields.get(name);
      types.add(name, type.dtype().number(), type.dims());
    }
    Object wanted = new Callbacks.Rows(names, given(filler, "Data.rows"));
    return new Data(org.scaletrain.internal.Data.rows_of(given(context, "Data.rows").raw, rows, types, wanted), context.raw, wanted);
  }

  /** Two over the same source: the first trains, the second, this fraction of the rows, validates. */
  @OfC("st_data_split")
  public Split split(double fraction, long seed) {
    DataSplit parts = new DataSplit(raw, fraction, seed);
    return new Split(new Data(parts.take_training(), raw), new Data(parts.take_validation(), raw));
  }

  /** Of seed 0. */
  public Split split(double fraction) {
    return split(fraction, 0);
  }

  /** How many there are. */
  @OfC("st_data_rows")
  public long rows() {
    return raw.rows();
  }

  /** Of files: how many different tokens there may be. */
  @OfC("st_data_vocabulary")
  public long vocabulary() {
    return raw.vocabulary();
  }

  /** What a table of token pairs, counted on this data, makes of {@code validation}: nats a token. */
  @OfC("st_data_bigram_loss")
  public double bigramLoss(Data validation) {
    return raw.bigram_loss(given(validation, "Data.bigramLoss").raw);
  }

  @Override
  @OfC("st_data_destroy")
  public void close() {
    raw.close();
  }
}
