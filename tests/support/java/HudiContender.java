import java.util.Scanner;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.common.config.LockConfiguration;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.lock.LockProvider;
import org.apache.hudi.exception.HoodieLockException;
import org.apache.hudi.storage.StorageConfiguration;
import org.apache.hudi.storage.hadoop.HadoopStorageConfiguration;

/** Takes a table lock as a writer of Hudi does: the arguments are its options, commands come line by line. */
public class HudiContender {
  public static void main(String[] arguments) throws Exception {
    TypedProperties options = new TypedProperties();
    for (String argument : arguments) {
      String[] parts = argument.split("=", 2);
      options.setProperty(parts[0], parts[1]);
    }
    LockProvider<?> provider = (LockProvider<?>) Class.forName(options.getString("hoodie.write.lock.provider"))
        .getConstructor(LockConfiguration.class, StorageConfiguration.class)
        .newInstance(new LockConfiguration(options), new HadoopStorageConfiguration(new Configuration()));
    System.out.println("ready");
    Scanner commands = new Scanner(System.in);
    while (commands.hasNext()) {
      switch (commands.next()) {
        case "acquire" -> System.out.println(acquired(provider, commands.nextInt()));
        case "release" -> {
          provider.unlock();
          System.out.println("released");
        }
        default -> throw new IllegalArgumentException();
      }
    }
    provider.close();
  }

  private static boolean acquired(LockProvider<?> provider, int waitMs) throws InterruptedException {
    try {
      return provider.tryLock(waitMs, TimeUnit.MILLISECONDS);
    } catch (HoodieLockException late) {
      return false;
    }
  }
}
