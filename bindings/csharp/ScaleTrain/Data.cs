using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>A field of rows that the program makes: dtype and dims of one row.</summary>
public struct Field {
  /// <summary>As the model's input is named.</summary>
  public string Name { get; }
  /// <summary>What its elements are.</summary>
  public DType DType { get; }
  /// <summary>Of one row.</summary>
  public long[] Dims { get; }

  /// <summary>All three.</summary>
  public Field(string name, DType dtype, params long[] dims) {
    Name = Handle.Given(name, "name");
    DType = dtype;
    Dims = Handle.Given(dims, "dims");
  }
}

/// <summary>Rows that training draws from, in an endless shuffled stream that is a function of the seed alone.</summary>
public sealed class Data : Handle {
  internal readonly Native.Data native;
  internal override NativeHandle Safe { get { return native.handle; } }

  private Data(Native.Data made, NativeHandle parent) {
    native = made;
    Safe.KeepWhat(parent);
  }

  /// <summary>A text file, a folder of them or a token file. options: <c>new { context = 64 }</c>, tokens in a row.</summary>
  [OfC("st_data_files")]
  public static Data Files(Context context, string path, object options = null) {
    return new Data(Native.Data.files(Given(context, "context").native, Given(path, "path"), Json.OfOptions(options)), context.Safe);
  }

  /// <summary>Arrays by name, whose first dimension is the rows. Not copied: they are pinned until the data and all that uses it is gone, and must
  /// not be written to.</summary>
  [OfC("st_data_arrays")]
  public static Data Arrays(Context context, Batch arrays) {
    Given(context, "context");
    long rows = -1;
    foreach (KeyValuePair<string, View> array in Given(arrays, "arrays"))
      if (rows < 0) rows = array.Value.Rows(array.Key);
    if (rows < 0) throw new InvalidArgumentException("arrays: there is none, so there are no rows");
    NativeHandle open = context.Safe.Open;
    Pins pins = Pins.Hold(arrays);
    return new Data(Native.Data.arrays(context.native, rows, pins.All, Bridge.Strong(open, pins)), context.Safe);
  }

  /// <summary>Rows made when they are wanted, ahead of use, on threads of the library's. What <paramref name="fill"/> throws arrives at the step
  /// that wanted the rows.</summary>
  [OfC("st_data_callback")]
  public static Data RowsOf(Context context, long rows, IReadOnlyList<Field> fields, FillFunction fill) {
    Given(context, "context");
    Given(fill, "fill");
    var all = new Writing();
    all.AddAll(Given(fields, "fields"), field => all.Add(Given(field.Name, "a field's name")).Add((long)field.DType).Add(field.Dims));
    var made = new Data(Native.Data.of_rows(context.native, rows, all.Done(), Bridge.Weak(context.Safe, fill)), context.Safe);
    made.Safe.Keep(fill);
    return made;
  }

  /// <summary>Two over the same source: the first trains; the second, this fraction of the rows, validates.</summary>
  [OfC("st_data_split")]
  public void Split(double fraction, long seed, out Data training, out Data validation) {
    var parts = new Native.DataSplit(native, fraction, seed);
    training = new Data(parts.take_training(), Safe);
    validation = new Data(parts.take_validation(), Safe);
    parts.handle.Dispose();
  }

  /// <summary>How many.</summary>
  [OfC("st_data_rows")]
  public long Rows { get { return native.rows(); } }

  /// <summary>Of files: how many different tokens there may be.</summary>
  [OfC("st_data_vocabulary")]
  public long Vocabulary { get { return native.vocabulary(); } }

  /// <summary>What a table of token pairs, counted on this data, makes of <paramref name="validation"/>: nats a token.</summary>
  [OfC("st_data_bigram_loss")]
  public double BigramLoss(Data validation) { return native.bigram_loss(Given(validation, "validation").native); }
}

}
