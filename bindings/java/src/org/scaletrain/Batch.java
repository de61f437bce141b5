package org.scaletrain;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * Named arrays in order: a batch, the inputs or outputs of a model, the parameters of an optimizer. The batch is immutable; the elements of
 * its arrays are not. Create it once and reuse it in every step, so that no step rebuilds the description of its arrays.
 */
public final class Batch {
  static final Batch NONE = new Batch(new Object[0]);

  private final Object[] pairs;

  private Batch(Object[] pairs) {
    this.pairs = pairs;
    for (int i = 0; i < pairs.length; i += 2) {
      if (pairs[i] == null) throw new InvalidArgument("Batch: a name is null");
      if (pairs[i + 1] == null) throw new InvalidArgument("Batch: the array named \"" + pairs[i] + "\" is null");
      for (int j = 0; j < i; j += 2)
        if (pairs[i].equals(pairs[j])) throw new InvalidArgument("Batch: two arrays are named \"" + pairs[i] + "\"");
    }
  }

  /** One array. */
  public static Batch of(String name, Array array) {
    return new Batch(new Object[] {name, array});
  }

  /** Two arrays. */
  public static Batch of(String name1, Array array1, String name2, Array array2) {
    return new Batch(new Object[] {name1, array1, name2, array2});
  }

  /** Three arrays. */
  public static Batch of(String name1, Array array1, String name2, Array array2, String name3, Array array3) {
    return new Batch(new Object[] {name1, array1, name2, array2, name3, array3});
  }

  /** The arrays of a map, in its iteration order. {@code Map.of} has no fixed order; {@code LinkedHashMap} has one. */
  public static Batch of(Map<String, Array> arrays) {
    List<Object> pairs = new ArrayList<>();
    arrays.forEach((name, array) -> pairs.addAll(Arrays.asList(name, array)));
    return new Batch(pairs.toArray());
  }

  /** A new batch with these arrays and one more. */
  public Batch and(String name, Array array) {
    Object[] more = Arrays.copyOf(pairs, pairs.length + 2);
    more[pairs.length] = name;
    more[pairs.length + 1] = array;
    return new Batch(more);
  }

  /** Number of arrays. */
  public int size() {
    return pairs.length / 2;
  }

  /** The names, in order. */
  public List<String> names() {
    List<String> names = new ArrayList<>();
    for (int i = 0; i < pairs.length; i += 2) names.add((String) pairs[i]);
    return List.copyOf(names);
  }

  /** Array i. */
  public Array get(int i) {
    return (Array) pairs[2 * Objects.checkIndex(i, size()) + 1];
  }

  /** The array with this name. Throws {@link NotFound} if there is none. */
  public Array get(String name) {
    for (int i = 0; i < pairs.length; i += 2) if (pairs[i].equals(name)) return (Array) pairs[i + 1];
    throw new NotFound("Batch: no array is named \"" + name + "\"; the names are " + names());
  }

  @Override
  public String toString() {
    StringBuilder text = new StringBuilder("{");
    for (int i = 0; i < pairs.length; i += 2) text.append(i == 0 ? "" : ", ").append(pairs[i]).append(": ").append(pairs[i + 1]);
    return text.append('}').toString();
  }

  /** Names and arrays alternating, as the native side reads them. Must not be modified. */
  Object[] pairs() {
    return pairs;
  }

  /** null for a null batch. */
  static Object[] pairsOf(Batch batch) {
    return batch == null ? null : batch.pairs;
  }

  /** For batches that the library reads after the call: this batch if all arrays are direct, else one with direct copies. */
  Batch lasting() {
    Object[] all = pairs.clone();
    boolean same = true;
    for (int i = 1; i < pairs.length; i += 2) {
      all[i] = ((Array) pairs[i]).lasting();
      same &= all[i] == pairs[i];
    }
    return same ? this : new Batch(all);
  }

  /** Copies the elements of heap arrays to the batch that {@link #lasting} returned. */
  void copyTo(Batch lasting) {
    for (int i = 1; i < pairs.length; i += 2) ((Array) pairs[i]).copyTo((Array) lasting.pairs[i]);
  }

  /** This batch, for a call whose library side keeps the arrays after returning. Throws if one is a heap array. */
  Batch held(String call) {
    for (int i = 0; i < pairs.length; i += 2) ((Array) pairs[i + 1]).held(call, (String) pairs[i]);
    return this;
  }
}
