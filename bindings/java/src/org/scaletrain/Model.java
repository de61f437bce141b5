package org.scaletrain;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.scaletrain.internal.Native;
import org.scaletrain.internal.NativeLibrary;

/** A graph and its parameters, which begin as the seed says. */
public final class Model extends Handle {
  final org.scaletrain.internal.Model raw;

  private Model(org.scaletrain.internal.Model raw, Object keeps) {
    this.raw = raw;
    raw.keeps = keeps;
  }

  /** Of a graph, which it does not need afterwards. */
  @OfC("st_model_create")
  public Model(Graph graph, long seed) {
    this(new org.scaletrain.internal.Model(given(graph, "Model").raw, seed), graph.raw);
  }

  /**
   * One of ours, {@code "gpt"}, {@code "gpt2"} (options are the keys of Hugging Face's config.json) or {@code "mlp"}; options such as
   * {@code layers}, {@code width}, {@code heads}, {@code context}, {@code hidden}.
   */
  @OfC("st_model_builtin")
  public static Model builtin(Context context, String name, Map<String, ?> options, long seed) {
    return new Model(
        new org.scaletrain.internal.Model(given(context, "Model.builtin").raw, name, Json.options(options), seed), context.raw);
  }

  /** The same graph, its own copy of the parameters. */
  @OfC("st_model_clone")
  public Model copy() {
    return new Model(raw.clone(), raw);
  }

  /** What is known about each. */
  @OfC({"st_model_parameter", "st_model_parameter_count"})
  public List<ParameterInfo> parameters() {
    List<ParameterInfo> all = new ArrayList<>();
    synchronized (raw) {  // names are the library's until they are copied
      for (long i = 0, n = raw.parameter_count(); i < n; ++i) all.add((ParameterInfo) raw.parameter(i));
    }
    return List.copyOf(all);
  }

  /** A whole parameter in f32, copied into a new {@code float[]}. */
  public Array get(String name) {
    ArrayType type = type(name);
    Array to = Array.of(new float[Math.toIntExact(type.size())], type.dims());
    get(name, to);
    return to;
  }

  /** A whole parameter, copied and converted into {@code to}. */
  @OfC("st_model_get")
  public void get(String name, Array to) {
    raw.get_parameter(name, to);
  }

  /** A whole parameter, copied and converted. */
  @OfC("st_model_set")
  public void set(String name, Array values) {
    raw.set_parameter(name, values);
  }

  /** this += t (from - this): target networks, averages. */
  @OfC("st_model_blend")
  public void blend(Model from, double t) {
    raw.blend(given(from, "Model.blend").raw, t);
  }

  /** 32 hex digits; two models are equal when it is. */
  @OfC("st_model_digest")
  public String digest() {
    return raw.digest();
  }

  /** All parameters, as safetensors. */
  @OfC("st_model_write_file")
  public void writeFile(Path path) {
    raw.write_file(path.toString());
  }

  /** The weights as they are now, written while the program goes on. */
  public Pending beginWriteFile(Path path) {
    return new Pending(raw.write_file_async(path.toString()), raw);
  }

  /** The same as a future. */
  public CompletableFuture<Void> writeFileAsync(Path path) {
    return beginWriteFile(path).toFuture();
  }

  /** All parameters, from a safetensors file, a folder that has one, or the index of its shards. */
  public void readFile(Path path) {
    readFile(path, new ReadOptions());
  }

  /** Parameters from such a file. */
  @OfC("st_model_read_file")
  public ReadReport readFile(Path path, ReadOptions options) {
    return given(options, "Model.readFile").readFile(raw, given(path, "Model.readFile").toString());
  }

  /**
   * As JSON, what a safetensors file, a folder that has one, or the index of its shards holds: files, metadata, and tensors of any dtype, those
   * that no call reads too.
   */
  @OfC("st_weights_inspect")
  public static String inspectWeights(Path path) {
    NativeLibrary.require();
    return Native.inspect_weights(given(path, "Model.inspectWeights").toString());
  }

  /** All parameters as one safetensors stream, front to back. The stream's exceptions arrive as themselves. */
  @OfC("st_model_write")
  public void write(OutputStream to) throws IOException {
    raw.write(given(to, "Model.write"));
  }

  /** All parameters from a safetensors stream. */
  public void read(InputStream from) throws IOException {
    read(from, new ReadOptions());
  }

  /** Parameters from a safetensors stream, to its end. The stream's exceptions arrive as themselves. */
  @OfC("st_model_read")
  public ReadReport read(InputStream from, ReadOptions options) throws IOException {
    return options.read(raw, given(from, "Model.read"));
  }

  /**
   * Names in Hugging Face's files of GPT-2 to those of the model {@code "gpt"}: {@code model.read(file, new
   * ReadOptions().rename(Model.gpt2Names()))} takes a model.safetensors as it is; {@link ReadOptions#partial} passes over the causal masks that
   * old ones hold. The model {@code "gpt2"} is what the config.json next to the file describes.
   */
  @SuppressWarnings("unchecked")
  public static Map<String, String> gpt2Names() {
    NativeLibrary.require();
    return (Map<String, String>) Json.parse(Native.gpt2_names_json());
  }

  /** The weights alone, from a checkpoint: the newest that is whole. */
  public LoadReport load(Checkpoint checkpoint) {
    return load(checkpoint, null, new ReadOptions());
  }

  /** The weights alone, from the checkpoint of a name; null: the newest that is whole. */
  @OfC("st_model_load")
  public LoadReport load(Checkpoint checkpoint, String name, ReadOptions options) {
    return given(options, "Model.load").load(raw, given(checkpoint, "Model.load").raw, name);
  }

  @Override
  @OfC("st_model_destroy")
  public void close() {
    synchronized (raw) {
      raw.close();
    }
  }

  ArrayType type(String name) {
    for (ParameterInfo info : parameters()) if (info.name().equals(name)) return info.type();
    throw new NotFound("the model has no parameter \"" + name + "\"; Model.parameters names all");
  }
}
