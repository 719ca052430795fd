"""Tables, trees and lists."""
