import java.util.Scanner;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

/** Takes a lock of ZooKeeper's as other programs do: arguments are servers and path, commands come line by line. */
public class CuratorContender {
  public static void main(String[] arguments) throws Exception {
    CuratorFramework client = CuratorFrameworkFactory.newClient(arguments[0], new RetryOneTime(100));
    client.start();
    client.blockUntilConnected();
    InterProcessMutex mutex = new InterProcessMutex(client, arguments[1]);
    System.out.println("ready");
    Scanner commands = new Scanner(System.in);
    while (commands.hasNext()) {
      switch (commands.next()) {
        case "acquire" -> System.out.println(mutex.acquire(commands.nextInt(), TimeUnit.MILLISECONDS));
        case "release" -> {
          mutex.release();
          System.out.println("released");
        }
        default -> throw new IllegalArgumentException();
      }
    }
    client.close();
  }
}
