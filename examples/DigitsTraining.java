import static org.comm4j.api.ReduceOp.SUM;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.stream.IntStream;
import java.util.zip.CRC32C;
import java.util.zip.GZIPInputStream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Communicator;
import org.comm4j.api.Communicators;
import org.comm4j.api.Reduction;

/// Learns to read handwritten digits, on all ranks together (data-parallel softmax regression).
///
///     ./comm-cli run -n 4 examples/DigitsTraining.java
///
/// Every rank has the same weights and a share of the images. In each step it computes the gradient
/// of its share, [Communicator#allReduce(float[], org.comm4j.api.ReduceOp)] adds up the gradients,
/// and every rank takes the same step: no weights are ever sent. Since the ranks get the same bits
/// their weights stay equal, which the checksums show. With ordered reduction they are equal on
/// every backend too. Another number of ranks adds up in another order and may end with other bits.
public final class DigitsTraining {
  private static final int STEPS = 200;
  private static final float LEARNING_RATE = 0.3f;
  private static final float MOMENTUM = 0.9f;

  private static final int CLASSES = 10;
  private static final int INPUTS = 64 + 1; // 8 x 8 pixels, and a constant for the bias
  private static final int WEIGHTS = CLASSES * INPUTS;

  private final Communicator comm;
  private final List<Image> training;
  private final List<Image> heldOut;
  private final float[] weights = new float[WEIGHTS];
  private long communicationNs;

  /// What came out: the share of the held-out images that were read rightly, and what the weights
  /// are.
  record Result(double accuracy, String checksum) {}

  private record Image(float[] inputs, int digit) {}

  public static void main(String[] args) {
    var config =
        CommConfig.fromEnvironment(System.getenv()).toBuilder()
            .reduction(Reduction.ORDERED)
            .build();
    try (Communicator comm = Communicators.open(config)) {
      train(comm);
    }
  }

  static Result train(Communicator comm) {
    return new DigitsTraining(comm).run();
  }

  private DigitsTraining(Communicator comm) {
    this.comm = comm;
    List<Image> all = readImages();
    training = share(all, IntStream.range(0, all.size()).filter(i -> i % 5 != 0));
    heldOut = share(all, IntStream.range(0, all.size()).filter(i -> i % 5 == 0));
  }

  /// Deals images to the ranks like cards.
  private List<Image> share(List<Image> all, IntStream indices) {
    int[] dealt = indices.toArray();
    return IntStream.range(0, dealt.length)
        .filter(i -> i % comm.size() == comm.rank())
        .mapToObj(i -> all.get(dealt[i]))
        .toList();
  }

  private Result run() {
    long startNs = System.nanoTime();
    long images = comm.allReduce(training.size(), SUM);
    float[] gradient = new float[WEIGHTS + 1]; // the last element is the loss
    float[] velocity = new float[WEIGHTS];
    say("%d rank(s) over %s learn from %d images%n", comm.size(), comm.backend(), images);

    for (int step = 1; step <= STEPS; step++) {
      Arrays.fill(gradient, 0);
      training.forEach(image -> addGradient(image, gradient));
      addUp(gradient);
      for (int i = 0; i < WEIGHTS; i++) {
        velocity[i] = MOMENTUM * velocity[i] + gradient[i] / images;
        weights[i] -= LEARNING_RATE * velocity[i];
      }
      showProgress(step, gradient[WEIGHTS] / images);
    }

    long right = comm.allReduce(heldOut.stream().filter(this::isReadRightly).count(), SUM);
    var result = new Result((double) right / comm.allReduce(heldOut.size(), SUM), checksum());
    say(
        "%.2f s in all, %.2f s of them in communication (waiting for slower ranks included)%n",
        (System.nanoTime() - startNs) * 1e-9, communicationNs * 1e-9);
    say("accuracy %.1f%n", 100 * result.accuracy());
    System.out.println("checksum " + result.checksum());
    return result;
  }

  /// The one line that makes the program parallel.
  private void addUp(float[] gradient) {
    long startNs = System.nanoTime();
    comm.allReduce(gradient, SUM);
    communicationNs += System.nanoTime() - startNs;
  }

  private void addGradient(Image image, float[] gradient) {
    float[] probabilities = probabilities(image);
    gradient[WEIGHTS] -= (float) StrictMath.log(Math.max(probabilities[image.digit], 1e-30f));
    for (int digit = 0; digit < CLASSES; digit++) {
      float error = probabilities[digit] - (digit == image.digit ? 1 : 0);
      for (int i = 0; i < INPUTS; i++) {
        gradient[digit * INPUTS + i] += error * image.inputs[i];
      }
    }
  }

  /// How likely the image is which digit. StrictMath has the same bits on every machine.
  private float[] probabilities(Image image) {
    float[] scores = new float[CLASSES];
    float highest = Float.NEGATIVE_INFINITY;
    for (int digit = 0; digit < CLASSES; digit++) {
      for (int i = 0; i < INPUTS; i++) {
        scores[digit] += weights[digit * INPUTS + i] * image.inputs[i];
      }
      highest = Math.max(highest, scores[digit]);
    }
    float sum = 0;
    for (int digit = 0; digit < CLASSES; digit++) {
      scores[digit] = (float) StrictMath.exp(scores[digit] - highest);
      sum += scores[digit];
    }
    for (int digit = 0; digit < CLASSES; digit++) {
      scores[digit] /= sum;
    }
    return scores;
  }

  private boolean isReadRightly(Image image) {
    float[] probabilities = probabilities(image);
    return IntStream.range(0, CLASSES)
        .allMatch(i -> probabilities[i] <= probabilities[image.digit]);
  }

  private String checksum() {
    ByteBuffer bytes = ByteBuffer.allocate(WEIGHTS * Float.BYTES);
    bytes.asFloatBuffer().put(weights);
    var crc = new CRC32C();
    crc.update(bytes);
    return "%08x".formatted(crc.getValue());
  }

  /// A bar on a terminal, which `comm-cli run` tells of where it stands between, else a line now
  /// and then.
  private void showProgress(int step, float loss) {
    boolean terminal =
        System.getenv("COMM4J_TERMINAL") != null
            || (System.console() != null && System.console().isTerminal());
    if (terminal) {
      int done = 40 * step / STEPS;
      String bar = "#".repeat(done) + ".".repeat(40 - done);
      say("%s step %d of %d, loss %.3f%s", bar, step, STEPS, loss, step < STEPS ? "\r" : "\n");
    } else if (step % 50 == 0) {
      say("step %d of %d, loss %.3f%n", step, STEPS, loss);
    }
  }

  private void say(String format, Object... arguments) {
    if (comm.rank() == 0) {
      System.out.printf(Locale.ROOT, format, arguments);
      System.out.flush();
    }
  }

  private static List<Image> readImages() {
    var resource = DigitsTraining.class.getResourceAsStream("/digits.csv.gz");
    Objects.requireNonNull(resource, "digits.csv.gz is not on the class path");
    try (var lines = new BufferedReader(new InputStreamReader(new GZIPInputStream(resource)))) {
      return lines.lines().map(DigitsTraining::parse).toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Image parse(String line) {
    String[] numbers = line.split(",");
    float[] inputs = new float[INPUTS];
    for (int i = 0; i < INPUTS - 1; i++) {
      inputs[i] = Integer.parseInt(numbers[i]) / 16f;
    }
    inputs[INPUTS - 1] = 1;
    return new Image(inputs, Integer.parseInt(numbers[INPUTS - 1]));
  }
}
