package org.scaletrain.internal;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Unpacks the native libraries of the jar into a folder that is named after a hash of their content. So each version is unpacked once, to its
 * own folder. Existing files are compared before use. Several processes may unpack at once: each file is written under a temporary name and
 * then moved into place.
 */
final class PackedLibrary {
  static final String PLACE = "native/linux-x86_64/";
  static final String CACHE = "org.scaletrain.cache";

  private PackedLibrary() {}

  /** The file to load, or null when this jar has none. */
  static Path unpack() throws IOException {
    Map<String, byte[]> files = new LinkedHashMap<>();
    try (InputStream list = resource("files")) {  // one name per line, dependencies first
      if (list == null) return null;
      for (String name : new String(list.readAllBytes(), java.nio.charset.StandardCharsets.UTF_8).split("\n"))
        if (!name.isBlank()) files.put(name.strip(), read(name.strip()));
    }
    Path folder = cache().resolve("java-" + hash(files));
    try {
      Files.createDirectories(folder);
      for (Map.Entry<String, byte[]> file : files.entrySet()) put(folder.resolve(file.getKey()), file.getValue());
    } catch (IOException error) {
      throw new IOException("scaletrain: the native library cannot be unpacked into " + folder + " (" + reason(error)
          + "); set the property " + CACHE + " to a folder that is writable and allows execution", error);
    }
    return folder.resolve(NativeLibrary.FILE).toAbsolutePath();
  }

  private static InputStream resource(String name) {
    return PackedLibrary.class.getResourceAsStream("/" + PLACE + name);
  }

  private static byte[] read(String name) throws IOException {
    try (InputStream stream = resource(name)) {
      if (stream == null) throw new IOException("scaletrain: the jar is incomplete: " + PLACE + name + " is missing");
      return stream.readAllBytes();
    }
  }

  /** The folder that the property names, or the user's cache folder. */
  private static Path cache() {
    String given = System.getProperty(CACHE);
    if (given != null) return Path.of(given).toAbsolutePath();
    String xdg = System.getenv("XDG_CACHE_HOME");
    Path parent = xdg != null && xdg.startsWith("/") ? Path.of(xdg) : Path.of(System.getProperty("user.home"), ".cache");
    return parent.resolve("scaletrain").toAbsolutePath();
  }

  private static String hash(Map<String, byte[]> files) {
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      files.values().forEach(digest::update);
      return HexFormat.of().formatHex(digest.digest(), 0, 8);
    } catch (NoSuchAlgorithmException never) {
      throw new IllegalStateException(never);
    }
  }

  /** Does not rewrite a file that is already correct, since another process may have loaded it. */
  private static void put(Path file, byte[] content) throws IOException {
    if (Files.isRegularFile(file) && Files.size(file) == content.length && Arrays.equals(Files.readAllBytes(file), content)) return;
    Path whole = Files.createTempFile(file.getParent(), file.getFileName().toString(), ".part");
    try {
      Files.write(whole, content);
      move(whole, file);
    } finally {
      Files.deleteIfExists(whole);
    }
  }

  private static void move(Path from, Path to) throws IOException {
    try {
      Files.move(from, to, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    } catch (AtomicMoveNotSupportedException | FileAlreadyExistsException elsewhere) {
      Files.move(from, to, StandardCopyOption.REPLACE_EXISTING);
    }
  }

  private static String reason(IOException error) {
    return error.getClass().getSimpleName() + (error.getMessage() == null ? "" : ": " + error.getMessage());
  }
}
